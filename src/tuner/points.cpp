#include "tuner/points.h"

#include <algorithm>
#include <tuple>

#include "kernels/kernel_spec.h"
#include "tuner/statistics.h"

namespace gemm {
namespace {

// Right and plausibly timed trials, the most careful one of each choice.
std::vector<PointOption> options_of(const Evidence& evidence) {
  std::vector<PointOption> options;
  for (const Trial& trial : evidence.trials) {
    const auto same = [&](const PointOption& option) { return option.choice == trial.choice; };
    // A choice that failed later than it was timed is out.
    const auto known = std::find_if(options.begin(), options.end(), same);
    const bool usable = trial.outcome.correct() && plausible(trial.outcome.times_us);
    if (known != options.end()) {
      if (usable && trial.stage < known->stage) continue;
      options.erase(known);
    }
    if (!usable) continue;
    options.push_back({trial.choice, trial.stage, summarise(trial.outcome.times_us), trial.outcome.max_scaled_error,
                       trial.outcome.registers, trial.outcome.spill_bytes, trial.outcome.shared_bytes});
  }
  // Finalists first: their times were taken together. The rest follows by time.
  std::sort(options.begin(), options.end(), [](const PointOption& a, const PointOption& b) {
    const bool final_a = a.stage == Stage::finals, final_b = b.stage == Stage::finals;
    if (final_a != final_b) return final_a;
    if (a.time_us.median != b.time_us.median) return a.time_us.median < b.time_us.median;
    return breaks_tie_before(a.choice, b.choice);
  });
  return options;
}

std::optional<double> median_of(const std::vector<double>& samples_us) {
  if (!plausible(samples_us)) return std::nullopt;
  return summarise(samples_us).median;
}

}  // namespace

bool breaks_tie_before(const Choice& a, const Choice& b) {
  const auto order = [](const Choice& c) {
    return std::make_tuple(c.split_k, config_id(c.config), c.reduction, c.relayout);
  };
  return order(a) < order(b);
}

PointResult evaluate(const Evidence& evidence) {
  PointResult result;
  result.problem = evidence.problem;
  result.cublas_us = median_of(evidence.baselines.cublas_us);
  result.cublaslt_best_us = median_of(evidence.baselines.cublaslt_best_us);
  result.options = options_of(evidence);
  if (result.options.empty()) return result;

  const PointOption& fastest = result.options.front();
  const double limit = fastest.time_us.median * (1 + tie_margin(fastest.time_us));
  std::vector<PointOption> tied;
  for (const PointOption& option : result.options)
    if (option.stage == fastest.stage && option.time_us.median <= limit) tied.push_back(option);
  std::sort(tied.begin(), tied.end(),
            [](const PointOption& a, const PointOption& b) { return breaks_tie_before(a.choice, b.choice); });
  const auto winner = std::find_if(result.options.begin(), result.options.end(),
                                   [&](const PointOption& option) { return option.choice == tied.front().choice; });
  std::rotate(result.options.begin(), winner, winner + 1);
  for (size_t i = 1; i < tied.size(); ++i) result.ties.push_back(to_string(tied[i].choice));
  return result;
}

std::optional<PointResult> from_table_point(const Table& table, const TablePoint& point) {
  PointResult result;
  result.problem = point.problem;
  result.cublas_us = point.cublas_us;
  result.cublaslt_best_us = point.cublaslt_best_us;
  result.ties = point.ties;
  if (point.kernel.empty()) return result;
  const PortfolioKernel* kernel = table.find_kernel(point.kernel);
  if (kernel == nullptr) return std::nullopt;
  result.options.push_back({choice_of(point, kernel->config), Stage::finals, point.time_us, point.max_scaled_error,
                            kernel->registers, kernel->spill_bytes, kernel->shared_bytes});
  return result;
}

const PointOption* served_by(const PointResult& point, const std::set<std::string>& portfolio) {
  for (const PointOption& option : point.options)
    if (portfolio.count(config_id(option.choice.config)) != 0) return &option;
  return nullptr;
}

}  // namespace gemm
