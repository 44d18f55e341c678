#include "dispatch/split_climb.h"

#include <algorithm>
#include <utility>

#include "dispatch/cost_families.h"
#include "dispatch/split_search.h"

namespace gemm {
namespace {

constexpr const auto& kSplits = kSearchedSplits;
constexpr int kManyShares = 4;    // blocks of a tile from which one alone is never faster
constexpr int kSmallCluster = 4;  // blocks up to which a cluster always adds faster than tickets or a second kernel
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// For each length of a share the last split that is not longer.
constexpr auto kLastUpTo = [] {
  std::array<size_t, kSplits.back() + 1> last{};
  for (size_t place = 0; place < kSplits.size(); ++place)
    for (auto share = static_cast<size_t>(kSplits[place]); share < last.size(); ++share) last[share] = place;
  return last;
}();

template <size_t... kPlaces>
constexpr std::array<Divisor, kSplits.size()> divisors(std::index_sequence<kPlaces...>) {
  return {Divisor(kSplits[kPlaces])...};
}
constexpr auto kBySplit = divisors(std::make_index_sequence<kSplits.size()>{});

// Uphill and downhill from where each multiprocessor gets a block.
class Climb {
 public:
  Climb(const ProductCost& cost, bool may_cluster, int64_t workspace)
      : cost_(cost), kernel_(cost.kernel), clusters_(may_cluster), workspace_(static_cast<double>(workspace)) {}

  Way run() {
    if (kernel_.config.family == Family::batch) {
      try_reduction(cost_.split(1), Reduction::ticket);
      return ways_[best_];
    }
    const double share = std::min({cost_.stages, kernel_.sm_count / cost_.tiles, static_cast<double>(kSplits.back())});
    const size_t start = kLastUpTo[static_cast<size_t>(share)];
    if (start > 0 && kSplits[start] < kManyShares) try_unsplit();
    // With more tiles than fit at a time there is nothing to split.
    if (cost_.tiles > 2 * kernel_.everywhere.blocks)
      try_unsplit();
    else
      climb(start);
    return ways_[best_];
  }

 private:
  double try_terms(const CostTerms& terms, int split, Reduction reduction) {
    const double us = terms.us();
    // The place that is not the best one's: no copying, and no branch that could not be foreseen.
    ways_[1 - best_] = {us, terms, split, reduction};
    best_ = us < ways_[best_].us ? 1 - best_ : best_;
    return us;
  }
  double try_reduction(const Split& split, Reduction reduction) {
    return try_terms(cost_.terms(split, reduction), split.count, reduction);
  }

  // Whole waves of tiles leave stream-k nothing to share; otherwise its partial tiles need workspace (workspace_bytes).
  bool can_share_k() const {
    if (!is_specialized(kernel_.config.load)) return false;
    const PersistentGrid grid = cost::grid_of(cost_, cost_.split(1), Reduction::stream_k);
    return grid.shared_tiles > 0 && 2 * grid.blocks * kernel_.tile_bytes <= workspace_;
  }

  double try_unsplit() {
    if (unsplit_us_ < kInfinite) return unsplit_us_;
    unsplit_us_ = try_reduction(cost_.split(1), Reduction::ticket);
    if (can_share_k()) unsplit_us_ = std::min(unsplit_us_, try_reduction(cost_.split(1), Reduction::stream_k));
    return unsplit_us_;
  }

  // The best time with this split; infinite where it cannot run.
  double try_split(size_t place) {
    const int wanted = kSplits[place];
    if (wanted == 1) return try_unsplit();
    if (wanted > cost_.stages) return kInfinite;
    // Persistent blocks that all have a tile are better shared out by stream-k.
    if (is_specialized(kernel_.config.load) && cost_.tiles * wanted > kernel_.everywhere.blocks) return kInfinite;
    const Split split = cost_.effective_split(kBySplit[place]);
    double us = kInfinite;
    const bool by_cluster = clusters_ && split.count <= kSmallCluster;
    if (!by_cluster && cost_.tiles_m * cost_.tiles_n <= kMaxTickets && split.blocks * kernel_.tile_bytes <= workspace_) {
      CostTerms terms = cost_.terms(split, Reduction::ticket);
      const double by_kernel_us = cost_.reduction_us(split, Reduction::kernel);
      const bool by_kernel = by_kernel_us < terms.reduction;
      terms.reduction = by_kernel ? by_kernel_us : terms.reduction;
      us = try_terms(terms, split.count, by_kernel ? Reduction::kernel : Reduction::ticket);
    }
    if (clusters_ && split.count <= kMostPerCluster) us = std::min(us, try_reduction(split, Reduction::cluster));
    return us;
  }

  // From kSplits[start] on, as long as it gets better.
  void climb(size_t start) {
    const double middle = try_split(start);
    double last = middle;
    size_t up = start;
    while (++up < kSplits.size()) {
      const double us = try_split(up);
      if (us >= last) break;
      last = us;
    }
    if (up > start + 1) return;
    last = middle;
    for (size_t down = start; down-- > 0;) {
      const double us = try_split(down);
      if (us >= last) break;
      last = us;
    }
  }

  const ProductCost& cost_;
  const KernelCost& kernel_;
  bool clusters_;
  double workspace_;
  double unsplit_us_ = kInfinite;
  Way ways_[2];
  size_t best_ = 0;
};

}  // namespace

Way best_way(const ProductCost& cost, bool may_cluster, int64_t workspace) {
  return Climb(cost, may_cluster, workspace).run();
}

}  // namespace gemm
