#include "tuner/statistics.h"

#include <algorithm>
#include <cmath>

namespace gemm {
namespace {

double quantile(const std::vector<double>& sorted, double fraction) {
  const double at = fraction * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

}  // namespace

TimeStats summarise(std::vector<double> samples_us) {
  if (samples_us.empty()) return {};
  std::sort(samples_us.begin(), samples_us.end());
  return {quantile(samples_us, 0.5), quantile(samples_us, 0.2), quantile(samples_us, 0.8),
          static_cast<int>(samples_us.size())};
}

bool plausible(const std::vector<double>& samples_us) {
  return !samples_us.empty() &&
         std::all_of(samples_us.begin(), samples_us.end(), [](double us) { return std::isfinite(us) && us > 0; });
}

bool disturbed(const std::vector<double>& samples_us) {
  constexpr double kMostAboveShortest = 1.1;
  return plausible(samples_us) &&
         summarise(samples_us).median > kMostAboveShortest * *std::min_element(samples_us.begin(), samples_us.end());
}

std::vector<double> undisturbed(const std::function<std::vector<double>()>& measure) {
  constexpr int kAttempts = 3;
  std::vector<double> best_us = measure();
  for (int attempt = 1; attempt < kAttempts && disturbed(best_us); ++attempt) {
    std::vector<double> again_us = measure();
    if (!disturbed(again_us) || summarise(again_us).median < summarise(best_us).median) best_us = std::move(again_us);
  }
  return best_us;
}

double tie_margin(const TimeStats& best) {
  if (best.n == 0 || best.median <= 0) return kTieMargin;
  // For a normal distribution p80 - p20 is 1.68 standard deviations, and the median's standard error 1.25 / sqrt(n) of one.
  const double standard_error = 1.25 * (best.p80 - best.p20) / 1.68 / std::sqrt(static_cast<double>(best.n));
  return std::clamp(2 * standard_error / best.median, kTieMargin, 0.05);
}

void GeometricMean::add(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value) || *value <= 0) return;
  sum_of_logs_ += std::log(*value);
  ++count_;
}

std::optional<double> GeometricMean::value() const {
  if (count_ == 0) return std::nullopt;
  return std::exp(sum_of_logs_ / count_);
}

}  // namespace gemm
