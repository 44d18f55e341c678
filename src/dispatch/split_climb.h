// The search of kernel_search.h, for vectors of so many floats. Only for kernel_search*.cpp.
#pragma once

#include "dispatch/cost_formulas.h"
#include "dispatch/kernel_search.h"
#include "dispatch/lanes.h"
#include "dispatch/split_search.h"

namespace gemm::cost {

inline constexpr double kMostSplit = kSearchedSplits.back();
inline constexpr double kManyShares = 4;  // blocks of a tile from which one alone is never faster
// Blocks up to which a cluster adds faster than tickets or a second kernel, or 0.3 % slower. From 3 on it need not: in
// clusters of 4, 64x32x64 takes 18 % longer for 8x4496x8556 NT by the cost model, and the climb would end there.
inline constexpr double kSmallCluster = 2;
inline constexpr float kInfinite = __builtin_inff();

template <class N>
struct Way {
  Terms<N> terms;
  N us = kInfinite;
  N split = 1.0, how = 0.0;
};

// From one of kSearchedSplits to the next one up; 0 from those beyond the last.
template <class N>
N step_up(const N& split) {
  const N small = where(split < 8.0, 1.0, where(split < 16.0, 2.0, 4.0));
  const N large = where(split < 48.0, 8.0, where(split < 96.0, 16.0, 32.0));
  return where(split < 32.0, small, large);
}
template <class N>
N step_down(const N& split) {
  return step_up(split - 1.0);
}

// Uphill and downhill from where each multiprocessor gets a block, all kernels at once.
template <size_t kWidth>
class Climb {
 public:
  using N = Lanes<kWidth>;
  using Mask = typename N::Mask;

  Climb(const Product<N>& product, const N& may_cluster, double workspace, double hopeless_us)
      : may_cluster_(may_cluster == 1.0), product_(product), workspace_(workspace), hopeless_us_(hopeless_us) {}

  Way<N> run() {
    Way<N> best;
    if (product_.formula == Formula::batch) {
      keep(best, unsplit(), (product_.kernel.BM >= product_.problem.m) & (product_.kernel.BN >= product_.problem.n));
      return best;
    }
    // With more tiles than fit at a time there is nothing to split.
    const Mask splittable = product_.tiles <= 2.0 * product_.kernel.blocks;
    const N share = most(1.0, least(least(product_.stages, product_.kernel.sm_count / product_.tiles), kMostSplit));
    const N start = whole(share / step_up(share)) * step_up(share);
    const Mask few = (!splittable) | (start < kManyShares);
    if (few.any()) keep(best, unsplit(), few);
    if (!splittable.any()) return best;
    const Mask from_split = splittable & (start > 1.0);
    N middle = best.us;
    if (from_split.any()) middle = where(from_split, try_split(best, start, from_split), middle);
    const Mask hopeful = splittable & ((best.us < hopeless_us_) | (best.us == double{kInfinite}));
    const Mask rose = climb_up(best, start, middle, hopeful);
    climb_down(best, start, middle, from_split & hopeful & !rose);
    return best;
  }

 private:
  static void keep(Way<N>& best, const Way<N>& other, const Mask& among) {
    const Mask better = among & (other.us < best.us);
    best.us = where(better, other.us, best.us);
    best.split = where(better, other.split, best.split);
    best.how = where(better, other.how, best.how);
    best.terms.fixed = where(better, other.terms.fixed, best.terms.fixed);
    best.terms.compute = where(better, other.terms.compute, best.terms.compute);
    best.terms.memory = where(better, other.terms.memory, best.terms.memory);
    best.terms.latency = where(better, other.terms.latency, best.terms.latency);
    best.terms.reduction = where(better, other.terms.reduction, best.terms.reduction);
  }

  Way<N> unsplit_by(Reduction reduction) const {
    Way<N> way;
    way.terms = terms_of(product_, product_.unsplit(), N(0.0) > 0.0, reduction == Reduction::stream_k);
    way.us = way.terms.us();
    way.how = static_cast<double>(reduction);
    return way;
  }
  // In clusters or, where it is faster, by tickets or a second kernel.
  Way<N> split_by(const Split<N>& split, const Mask& in_clusters) const {
    Way<N> way;
    way.terms = terms_of(product_, split, in_clusters, false);
    const N ticket_us = split_us(product_, split, Reduction::ticket);
    const N kernel_us = split_us(product_, split, Reduction::kernel);
    way.terms.reduction = where(in_clusters, split_us(product_, split, Reduction::cluster), least(ticket_us, kernel_us));
    way.how =
        where(in_clusters, static_cast<double>(Reduction::cluster),
              where(kernel_us < ticket_us, static_cast<double>(Reduction::kernel), static_cast<double>(Reduction::ticket)));
    way.us = way.terms.us();
    way.split = split.count;
    return way;
  }

  const Way<N>& unsplit() {
    if (!knows_unsplit_) unsplit_ = try_unsplit();
    knows_unsplit_ = true;
    return unsplit_;
  }
  Way<N> try_unsplit() const {
    const Split<N> split = product_.unsplit();
    Way<N> way = unsplit_by(Reduction::ticket);
    if (product_.formula != Formula::specialized) return way;
    // Whole waves of tiles leave stream-k nothing to share; otherwise its partial tiles need workspace (workspace_bytes).
    const Grid<N> grid = grid_of(product_, split, Reduction::stream_k);
    const Mask may_share = (grid.shared_tiles > 0.0) & (2.0 * grid.blocks * product_.kernel.tile_bytes <= workspace_);
    if (may_share.any()) keep(way, unsplit_by(Reduction::stream_k), may_share);
    return way;
  }

  // The best time with this split; infinite where it cannot run. It counts for `best` among these.
  N try_split(Way<N>& best, const N& wanted, const Mask& among) const {
    Mask may_run = among & (wanted <= product_.stages);
    // Persistent blocks that all have a tile are better shared out by stream-k.
    if (product_.formula == Formula::specialized) may_run = may_run & (product_.tiles * wanted <= product_.kernel.blocks);
    if (!may_run.any()) return kInfinite;
    const Split<N> split = product_.effective_split(wanted);
    const Mask small = may_cluster_ & (split.count <= kSmallCluster);
    const Mask fits = (product_.tiles_m * product_.tiles_n <= double{kMaxTickets}) &
                      (split.blocks * product_.kernel.tile_bytes <= workspace_);
    Way<N> way = split_by(split, small);
    way.us = where(may_run & (small | fits), way.us, kInfinite);
    const Mask large = may_run & may_cluster_ & (split.count > kSmallCluster) & (split.count <= double{kMostPerCluster});
    if (large.any()) keep(way, split_by(split, large), large);
    keep(best, way, among);
    return way.us;
  }

  // From a split on, which takes so long, as long as it gets better. Returns which got anywhere.
  Mask climb_up(Way<N>& best, N split, N us, Mask climbing) const {
    Mask rose = climbing & !climbing;
    while (climbing.any()) {
      split = split + step_up(split);
      climbing = climbing & (split <= kMostSplit);
      const N next_us = try_split(best, split, climbing);
      climbing = climbing & (next_us < us);
      rose = rose | climbing;
      us = next_us;
    }
    return rose;
  }
  void climb_down(Way<N>& best, N split, N us, Mask climbing) {
    while (climbing.any()) {
      split = most(split - step_down(split), 1.0);  // not 0 in lanes that climb no more
      const Mask at_end = climbing & (split <= 1.0);
      if (at_end.any()) keep(best, unsplit(), at_end);
      climbing = climbing & (split > 1.0);
      const N next_us = try_split(best, split, climbing);
      // Where nothing could run so far, for want of workspace, smaller splits may.
      climbing = climbing & ((next_us < us) | (us == double{kInfinite}));
      us = next_us;
    }
  }

  Mask may_cluster_;
  Way<N> unsplit_;
  const Product<N>& product_;
  double workspace_, hopeless_us_;
  bool knows_unsplit_ = false;
};

// Everything inline: what formulas share is worked out once then and stays in registers, and no ordinary inline function is
// left in the object for wide vectors, where the linker could take it for everybody.
#ifdef GEMM_ALL_INLINE
#define GEMM_SEARCH [[gnu::flatten]]
#else
#define GEMM_SEARCH
#endif
template <size_t kWidth>
GEMM_SEARCH void search_group(const KernelGroup& group, const CostProblem& problem, double workspace, double hopeless_us,
                              GroupWays& ways) {
  using N = Lanes<kWidth>;
  static_assert(sizeof(KernelNumbers<N>) == sizeof group.numbers && sizeof(LoadNumbers<N>) == sizeof group.loads[0]);
  const auto& kernel = laid_out_as<KernelNumbers<N>>(&group.numbers);
  const auto& loads = laid_out_as<LoadNumbers<N>>(&group.loads[loads_index(group.formula, problem)]);
  const Product<N> product(group.formula, kernel, loads, problem);
  const Way<N> way = Climb<kWidth>(product, N(group.may_cluster.data()), workspace, hopeless_us).run();
  static_assert(sizeof ways == sizeof way);
  __builtin_memcpy(&ways, &way, sizeof way);
}

}  // namespace gemm::cost
