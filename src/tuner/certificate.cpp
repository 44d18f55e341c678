#include "tuner/certificate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "dispatch/selector.h"
#include "kernels/kernel_spec.h"
#include "tuner/candidates.h"

namespace gemm {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Of short times, which err by some per cent, the fastest is seldom beaten by one beyond these by more than that.
constexpr size_t kRivals = 5;
constexpr double kNoKernel = 10;  // slowdown of a problem for which no kernel of a small portfolio was timed

double geometric_mean(const std::vector<double>& ratios) {
  double sum = 0;
  for (const double ratio : ratios) sum += std::log(ratio);
  return ratios.empty() ? 0 : std::exp(sum / static_cast<double>(ratios.size()));
}

double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

// In the contest; nothing where the candidate took no part in one.
std::optional<double> time_of(const Candidate& candidate, const PointResult& measured) {
  for (const PointOption& option : measured.options) {
    if (option.stage != Stage::certificate) continue;
    if (candidate.use_cublas) return measured.cublas_us;
    if (option.choice == candidate.choice) return option.time_us.median;
  }
  return std::nullopt;
}

// The fastest kernel of the portfolio in the contest.
double best_in_contest(const Table& table, const PointResult& measured) {
  double best_us = kInfinite;
  for (const PointOption& option : measured.options)
    if (option.stage == Stage::certificate && table.find_kernel(config_id(option.choice.config)) != nullptr)
      best_us = std::min(best_us, option.time_us.median);
  return best_us;
}

// What the selector chose, unless that is cuBLAS, which is timed anyway, and the fastest others.
std::vector<Choice> contestants(const Table& table, const Candidate& chosen, const PointResult& measured) {
  std::vector<const PointOption*> rivals;
  for (const PointOption& option : measured.options)
    if (table.find_kernel(config_id(option.choice.config)) != nullptr &&
        (chosen.use_cublas || option.choice != chosen.choice))
      rivals.push_back(&option);
  std::stable_sort(rivals.begin(), rivals.end(),
                   [](const auto* a, const auto* b) { return a->time_us.median < b->time_us.median; });
  rivals.resize(std::min(kRivals, rivals.size()));
  std::vector<Choice> choices;
  if (!chosen.use_cublas) choices.push_back(chosen.choice);
  for (const PointOption* rival : rivals) choices.push_back(rival->choice);
  return choices;
}

// The fastest time of each kernel of the portfolio on a problem, in the portfolio's order.
std::vector<double> kernel_times(const Table& table, const PointResult& measured) {
  std::map<std::string, double> times;
  for (const PointOption& option : measured.options) {
    double& us = times.emplace(config_id(option.choice.config), kInfinite).first->second;
    us = std::min(us, option.time_us.median);
  }
  std::vector<double> list;
  for (const PortfolioKernel& kernel : table.portfolio) {
    const auto found = times.find(kernel.id);
    list.push_back(found == times.end() ? kInfinite : found->second);
  }
  return list;
}

double fastest(const std::vector<double>& times) {
  return times.empty() ? kInfinite : *std::min_element(times.begin(), times.end());
}

// Ratios of the cases of one group.
struct Group {
  CertificateGroup result;
  std::vector<double> of_best, with_cublas, over_cublas;

  void add(const PointResult& measured, double best_us, const Candidate& chosen, double us) {
    of_best.push_back(std::min(1.0, best_us / us));
    if (result.problems == 0 || of_best.back() < result.worst)
      result.worst = of_best.back(), result.worst_problem = measured.problem;
    ++result.problems;
    result.cublas_chosen += chosen.use_cublas;
    if (!measured.cublas_us) return;
    over_cublas.push_back(*measured.cublas_us / us);
    with_cublas.push_back(std::min(best_us, *measured.cublas_us) / us);
  }

  std::optional<CertificateGroup> finish() {
    if (result.problems == 0) return std::nullopt;
    result.of_best = geometric_mean(of_best);
    result.of_best_p5 = percentile(of_best, 0.05);
    if (!over_cublas.empty()) {
      result.over_cublas = geometric_mean(over_cublas);
      result.of_best_or_cublas = geometric_mean(with_cublas);
    }
    return result;
  }
};

// The order in which to take kernels so that each takes most off the sum of log(time / best time).
std::vector<size_t> greedy_order(const std::vector<std::vector<double>>& times, size_t kernels) {
  std::vector<size_t> order;
  std::vector<double> current(times.size());
  for (size_t p = 0; p < times.size(); ++p) current[p] = kNoKernel * fastest(times[p]);
  while (order.size() < kernels) {
    size_t best = kernels;
    double best_gain = -1;
    for (size_t k = 0; k < kernels; ++k) {
      if (std::find(order.begin(), order.end(), k) != order.end()) continue;
      double gain = 0;
      for (size_t p = 0; p < times.size(); ++p)
        if (times[p][k] < current[p]) gain += std::log(current[p] / times[p][k]);
      if (gain > best_gain) best_gain = gain, best = k;
    }
    order.push_back(best);
    for (size_t p = 0; p < times.size(); ++p) current[p] = std::min(current[p], times[p][best]);
  }
  return order;
}

}  // namespace

std::vector<Contest> open_contests(const Table& table, const std::vector<CertificateCase>& cases) {
  const Selector selector(&table, table.device);
  std::vector<Contest> contests;
  for (const CertificateCase& one : cases) {
    const Decision decision = selector.choose(one.measured.problem, kWorkspaceBytes);
    const Candidate& chosen = decision.candidates.front();
    if (time_of(chosen, one.measured)) continue;
    if (std::vector<Choice> choices = contestants(table, chosen, one.measured); !choices.empty())
      contests.push_back({one.measured.problem, std::move(choices)});
  }
  return contests;
}

Certificate make_certificate(const Table& table, const std::vector<CertificateCase>& cases) {
  const Selector selector(&table, table.device);
  Group box, outside;
  for (const CertificateCase& one : cases) {
    const Decision decision = selector.choose(one.measured.problem, kWorkspaceBytes);
    const Candidate& chosen = decision.candidates.front();
    const std::optional<double> us = time_of(chosen, one.measured);
    const double best_us = best_in_contest(table, one.measured);
    if (us && best_us < kInfinite) (one.box ? box : outside).add(one.measured, best_us, chosen, *us);
  }
  return {box.finish(), outside.finish()};
}

std::vector<double> portfolio_curve(const Table& table, const std::vector<PointResult>& ordered_by,
                                    const std::vector<CertificateCase>& judged_by) {
  std::vector<std::vector<double>> order_times;
  for (const PointResult& result : ordered_by)
    if (std::vector<double> times = kernel_times(table, result); fastest(times) < kInfinite)
      order_times.push_back(std::move(times));
  std::vector<std::vector<double>> judged_times;
  for (const CertificateCase& one : judged_by)
    if (std::vector<double> times = kernel_times(table, one.measured); fastest(times) < kInfinite)
      judged_times.push_back(std::move(times));
  if (order_times.empty() || judged_times.empty()) return {};

  std::vector<double> curve;
  std::vector<double> current;
  for (const std::vector<double>& times : judged_times) current.push_back(kNoKernel * fastest(times));
  for (const size_t kernel : greedy_order(order_times, table.portfolio.size())) {
    std::vector<double> ratios;
    ratios.reserve(judged_times.size());
    for (size_t p = 0; p < judged_times.size(); ++p) {
      current[p] = std::min(current[p], judged_times[p][kernel]);
      ratios.push_back(fastest(judged_times[p]) / current[p]);
    }
    curve.push_back(geometric_mean(ratios));
  }
  return curve;
}

}  // namespace gemm
