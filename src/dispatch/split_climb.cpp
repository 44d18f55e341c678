#include "dispatch/split_climb.h"

#include <algorithm>

#include "dispatch/cost_families.h"
#include "dispatch/split_search.h"

namespace gemm {
namespace {

constexpr const auto& kSplits = kSearchedSplits;
constexpr int kManyShares = 4;    // blocks of a tile from which one alone is never faster
constexpr int kSmallCluster = 4;  // blocks up to which a cluster always adds faster than tickets or a second kernel
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Uphill and downhill from where each multiprocessor gets a block.
struct Climb {
  const KernelCost& kernel;
  const CostProblem& problem;
  bool clusters;
  double workspace;
  double tiles, tiles_per_matrix, stages;
  double unsplit_us = kInfinite;
  Way best;

  Climb(const KernelCost& its_kernel, const CostProblem& its_problem, bool may_cluster, int64_t its_workspace)
      : kernel(its_kernel),
        problem(its_problem),
        clusters(may_cluster),
        workspace(static_cast<double>(its_workspace)),
        tiles_per_matrix(cost::ceil_div(problem.m, kernel.config.BM) * cost::ceil_div(problem.n, kernel.config.BN)),
        stages(cost::ceil_div(problem.k, kernel.config.BK)) {
    tiles = tiles_per_matrix * problem.batch;
  }

  double try_terms(const CostTerms& terms, int split, Reduction reduction) {
    const double us = terms.us();
    if (us < best.us) best = {us, terms, split, reduction};
    return us;
  }
  double try_reduction(int split, Reduction reduction) {
    return try_terms(kernel.terms(problem, split, reduction), split, reduction);
  }

  // Whole waves of tiles leave stream-k nothing to share; otherwise its partial tiles need workspace.
  bool can_share_k() const {
    const KernelConfig& c = kernel.config;
    if (!is_specialized(c.load)) return false;
    const int64_t bytes = workspace_bytes({c, 1, Reduction::stream_k}, problem.problem, static_cast<int>(kernel.sm_count));
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
    // Persistent blocks that all have a tile are better shared out by stream-k.
    if (is_specialized(kernel.config.load) && tiles * wanted > kernel.resident * kernel.sm_count) return kInfinite;
    // Every block gets at least one stage (effective_split).
    const int split = static_cast<int>(cost::ceil_div(stages, cost::ceil_div(stages, wanted)));
    double us = kInfinite;
    const bool by_cluster = clusters && split <= kSmallCluster;
    if (!by_cluster && tiles_per_matrix <= kMaxTickets && tiles * split * kernel.tile_bytes <= workspace) {
      CostTerms terms = kernel.terms(problem, split, Reduction::ticket);
      const double by_kernel_us = kernel.reduction_us(problem, split, Reduction::kernel);
      const bool by_kernel = by_kernel_us < terms.reduction;
      if (by_kernel) terms.reduction = by_kernel_us;
      us = try_terms(terms, split, by_kernel ? Reduction::kernel : Reduction::ticket);
    }
    if (clusters && split <= kMostPerCluster) us = std::min(us, try_reduction(split, Reduction::cluster));
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
    if (kernel.config.family == Family::batch) {
      try_reduction(1, Reduction::ticket);
      return;
    }
    const double share = std::min(stages, kernel.sm_count / tiles);
    const auto above = std::upper_bound(kSplits.begin() + 1, kSplits.end(), share);
    const auto start = static_cast<size_t>(above - kSplits.begin()) - 1;
    if (start > 0 && kSplits[start] < kManyShares) try_split(1);
    // With more tiles than fit at a time there is nothing to split.
    if (tiles > 2 * kernel.sm_count * kernel.resident)
      try_split(1);
    else
      climb(start);
  }
};

}  // namespace

Way best_way(const KernelCost& kernel, const CostProblem& problem, bool may_cluster, int64_t workspace) {
  Climb climb(kernel, problem, may_cluster, workspace);
  climb.run();
  return climb.best;
}

}  // namespace gemm
