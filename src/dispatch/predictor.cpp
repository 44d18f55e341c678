#include "dispatch/predictor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dispatch/split_search.h"

namespace gemm {
namespace {

constexpr const auto& kSplits = kSearchedSplits;
constexpr size_t kLeast = 2;  // predictions: another one for where the first cannot be built
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// A factor that is known everywhere, from before there were others.
CostFactors same_everywhere(double factor) {
  CostFactors factors;
  for (const size_t term : {CostFactors::fixed, CostFactors::compute, CostFactors::memory, CostFactors::latency})
    factors.values[term] = factor;
  for (size_t i = 0; i < 4; ++i) factors.values[CostFactors::reduction + i] = factor;
  return factors;
}

}  // namespace

// The search for the best split of one kernel: uphill and downhill from where each multiprocessor gets a block.
struct Predictor::Search {
  const Kernel& kernel;
  const CostProblem& problem;
  const ProblemClass& seen;
  double workspace;
  double tiles, tiles_per_matrix, stages;
  double unsplit_us = kInfinite, best_us = kInfinite;
  int best_split = 1;
  Reduction best_reduction = Reduction::ticket;

  Search(const Kernel& its_kernel, const CostProblem& its_problem, const ProblemClass& its_class, int64_t its_workspace)
      : kernel(its_kernel),
        problem(its_problem),
        seen(its_class),
        workspace(static_cast<double>(its_workspace)),
        tiles_per_matrix(std::ceil(problem.m / kernel.cost.config.BM) * std::ceil(problem.n / kernel.cost.config.BN)),
        stages(std::ceil(problem.k / kernel.cost.config.BK)) {
    tiles = tiles_per_matrix * problem.batch;
  }

  double try_terms(const CostTerms& terms, int split, Reduction reduction) {
    const double us = kernel.factors.apply(terms, seen, reduction).us();
    if (us < best_us) best_us = us, best_split = split, best_reduction = reduction;
    return us;
  }
  double try_reduction(int split, Reduction reduction) {
    return try_terms(kernel.cost.terms(problem, split, reduction), split, reduction);
  }

  // Whole waves of tiles leave stream-k nothing to share; otherwise its partial tiles need workspace.
  bool can_share_k() const {
    const KernelConfig& c = kernel.cost.config;
    if (!is_specialized(c.load)) return false;
    const int64_t bytes =
        workspace_bytes({c, 1, Reduction::stream_k}, problem.problem, static_cast<int>(kernel.cost.sm_count));
    return bytes > 0 && static_cast<double>(bytes) <= workspace;
  }

  // The best time with this split; infinite where it cannot run.
  double try_split(int wanted) {
    if (wanted == 1) {
      if (unsplit_us < kInfinite) return unsplit_us;
      unsplit_us = try_reduction(1, Reduction::ticket);
      if (can_share_k()) unsplit_us = std::min(unsplit_us, try_reduction(1, Reduction::stream_k));
      return unsplit_us;
    }
    if (wanted > stages) return kInfinite;
    // Every block gets at least one stage (effective_split).
    const int split = static_cast<int>(std::ceil(stages / std::ceil(stages / wanted)));
    double us = kInfinite;
    if (tiles_per_matrix <= kMaxTickets && tiles * split * kernel.cost.tile_bytes <= workspace) {
      CostTerms terms = kernel.cost.terms(problem, split, Reduction::ticket);
      us = try_terms(terms, split, Reduction::ticket);
      terms.reduction = kernel.cost.reduction_us(problem, split, Reduction::kernel);
      us = std::min(us, try_terms(terms, split, Reduction::kernel));
    }
    if (kernel.clusters && split <= kMostPerCluster) us = std::min(us, try_reduction(split, Reduction::cluster));
    return us;
  }

  // From kSplits[start] on, as long as it gets better.
  void climb(size_t start) {
    const double middle = try_split(kSplits[start]);
    double last = middle;
    size_t up = start;
    while (++up < kSplits.size()) {
      const double us = try_split(kSplits[up]);
      if (us >= last) break;
      last = us;
    }
    if (up > start + 1) return;
    last = middle;
    for (size_t down = start; down-- > 0;) {
      const double us = try_split(kSplits[down]);
      if (us >= last) break;
      last = us;
    }
  }

  void run() {
    if (kernel.cost.config.family == Family::batch) {
      try_reduction(1, Reduction::ticket);
      return;
    }
    const double share = std::min(stages, kernel.cost.sm_count / tiles);
    const auto above = std::upper_bound(kSplits.begin() + 1, kSplits.end(), share);
    const auto start = static_cast<size_t>(above - kSplits.begin()) - 1;
    if (start > 0) try_split(1);
    // With more tiles than fit at a time there is nothing to split.
    if (tiles > 2 * kernel.cost.sm_count * kernel.cost.resident)
      try_split(1);
    else
      climb(start);
  }
};

Predictor::Predictor(const Table& table, const DeviceInfo& device)
    : device_(device),
      cublas_(table.cublas_factors),
      columns_(table.portfolio.size() + 1),
      neighbourhood_(columns_ <= Neighbourhood::kMostColumns ? table.calibration : std::vector<MeasuredProblem>{},
                     columns_) {
  for (size_t i = 0; i < table.portfolio.size(); ++i) {
    const PortfolioKernel& kernel = table.portfolio[i];
    if ((!kernel.factors && !kernel.model_factor) || why_invalid(kernel.config, device.limits) != nullptr) continue;
    kernels_.push_back({KernelCost(kernel.config, device),
                        kernel.factors ? *kernel.factors : same_everywhere(*kernel.model_factor), i,
                        can_cluster(kernel.config) && device.limits.compute_capability >= 90});
  }
}

Predictor::Predictions Predictor::predict(const Problem& problem, int64_t workspace) const {
  const CostProblem p(problem);
  const ProblemClass seen(p);
  Predictions predictions;
  std::array<float, Neighbourhood::kMostColumns> means{};
  if (columns_ <= means.size()) neighbourhood_.mean_log_ratios(p, std::span(means).first(columns_));

  // In the order of what each could reach at best, until that is worse than what others do reach.
  struct Open {
    double bound_us, correction;
    const Kernel* kernel;
  };
  std::array<Open, Neighbourhood::kMostColumns> open;
  size_t count = 0;
  for (const Kernel& kernel : kernels_) {
    const KernelConfig& c = kernel.cost.config;
    if (count == open.size() || !may_serve(c, problem)) continue;
    const double correction = std::exp(static_cast<double>(means[kernel.column]));
    open[count++] = {kernel.factors.apply(kernel.cost.least(p), seen, Reduction::ticket).us() * correction, correction,
                     &kernel};
  }
  while (count > 0) {
    const auto next = std::min_element(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(count),
                                       [](const Open& a, const Open& b) { return a.bound_us < b.bound_us; });
    const bool full = predictions.count == kMost;
    if (predictions.count >= kLeast && next->bound_us > predictions.best[0].us) break;
    Search search(*next->kernel, p, seen, workspace);
    search.run();
    const double us = search.best_us * next->correction;
    const Choice choice{next->kernel->cost.config, search.best_split, search.best_reduction};
    *next = open[--count];
    if (!(us < kInfinite) || (full && us >= predictions.best[kMost - 1].us)) continue;
    if (!may_run(choice, problem, device_, workspace)) continue;
    size_t place = full ? kMost - 1 : predictions.count++;
    for (; place > 0 && predictions.best[place - 1].us > us; --place) predictions.best[place] = predictions.best[place - 1];
    predictions.best[place] = {us, choice};
  }
  if (cublas_)
    predictions.cublas_us = cublas_->apply(cublas_terms(device_, p), seen, Reduction::ticket).us() *
                            std::exp(static_cast<double>(means[columns_ - 1]));
  return predictions;
}

}  // namespace gemm
