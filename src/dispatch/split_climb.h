// The search of kernel_search.h, for vectors of so many floats. Only for kernel_search*.cpp.
#pragma once

#include "dispatch/cost_formulas.h"
#include "dispatch/kernel_search.h"
#include "dispatch/lanes.h"
#include "dispatch/split_search.h"

namespace gemm::cost {

inline constexpr double kManyShares = 4;  // blocks of a tile from which one alone is never faster
inline constexpr float kInfinite = __builtin_inff();

template <class N>
struct Way {
  Terms<N> terms;
  N us = kInfinite;
  N split = 1.0, how = 0.0;
};

// For each length of a share the last split that is not longer.
inline constexpr auto kLastUpTo = [] {
  std::array<int, kSearchedSplits.back() + 1> last{};
  for (size_t place = 0; place < kSearchedSplits.size(); ++place)
    for (auto share = static_cast<size_t>(kSearchedSplits[place]); share < last.size(); ++share)
      last[share] = static_cast<int>(place);
  return last;
}();
// With two splits more at both ends, at which a climb ends.
inline constexpr auto kSplits = [] {
  std::array<float, kSearchedSplits.size() + 1> splits{};
  for (size_t place = 0; place < kSearchedSplits.size(); ++place) splits[place] = static_cast<float>(kSearchedSplits[place]);
  splits.back() = 1e9F;  // more than there are stages
  return splits;
}();

// Uphill and downhill from where each multiprocessor gets a block, all kernels at once.
template <size_t kWidth>
class Climb {
 public:
  using N = Lanes<kWidth>;
  using Mask = typename N::Mask;

  Climb(const Product<N>& product, const N& may_cluster, double workspace)
      : product_(product), may_cluster_(may_cluster == 1.0), workspace_(workspace) {}

  Way<N> run() {
    const Way<N> unsplit = try_unsplit();
    if (product_.formula == Formula::batch) return unsplit;
    start_at_shares();
    // With more tiles than fit at a time there is nothing to split.
    const Mask splittable = product_.tiles <= 2.0 * product_.kernel.blocks;
    Way<N> best;
    keep(best, unsplit, (!splittable) | (split_at(start_) < kManyShares));
    if (!splittable.any()) return best;
    const Mask from_split = splittable & (start_ > 0.0);
    N middle = unsplit.us;
    if (from_split.any()) middle = where(from_split, try_split(best, split_at(start_), from_split), middle);
    const Mask rose = climb_up(best, middle, splittable);
    climb_down(best, unsplit, middle, from_split & !rose);
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

  static N split_at(const N& place) {
    float lanes[N::kCount];
    place.store(lanes);
    for (float& lane : lanes) lane = kSplits[static_cast<size_t>(static_cast<int>(lane))];
    return N(lanes);
  }
  void start_at_shares() {
    float lanes[N::kCount];
    least(least(product_.stages, product_.kernel.sm_count / product_.tiles), double{kSearchedSplits.back()}).store(lanes);
    for (float& lane : lanes) lane = static_cast<float>(kLastUpTo[static_cast<size_t>(static_cast<int>(lane))]);
    start_ = N(lanes);
  }

  Way<N> way_of(const Split<N>& split, Reduction reduction) const {
    Way<N> way;
    way.terms = terms_of(product_, split, reduction);
    way.us = way.terms.us();
    way.split = split.count;
    way.how = static_cast<double>(reduction);
    return way;
  }

  Way<N> try_unsplit() const {
    const Split<N> split = product_.unsplit();
    Way<N> way = way_of(split, Reduction::ticket);
    if (product_.formula != Formula::specialized) return way;
    // Whole waves of tiles leave stream-k nothing to share; otherwise its partial tiles need workspace (workspace_bytes).
    const Grid<N> grid = grid_of(product_, split, Reduction::stream_k);
    const Mask may_share =
        (grid.shared_tiles > 0.0) & (2.0 * grid.blocks * product_.kernel.tile_bytes <= workspace_);
    if (may_share.any()) keep(way, way_of(split, Reduction::stream_k), may_share);
    return way;
  }

  // The best time with this split; infinite where it cannot run. It counts for `best` among these.
  N try_split(Way<N>& best, const N& wanted, const Mask& among) const {
    Mask may_run = among & (wanted <= product_.stages);
    // Persistent blocks that all have a tile are better shared out by stream-k.
    if (product_.formula == Formula::specialized) may_run = may_run & (product_.tiles * wanted <= product_.kernel.blocks);
    if (!may_run.any()) return kInfinite;
    const Split<N> split = product_.effective_split(wanted);
    Way<N> way = way_of(split, Reduction::ticket);
    const N by_kernel_us = split_us(product_, split, Reduction::kernel);
    const Mask by_kernel = by_kernel_us < way.terms.reduction;
    way.terms.reduction = where(by_kernel, by_kernel_us, way.terms.reduction);
    way.how = where(by_kernel, static_cast<double>(Reduction::kernel), way.how);
    const Mask fits = (product_.tiles_m * product_.tiles_n <= double{kMaxTickets}) &
                      (split.blocks * product_.kernel.tile_bytes <= workspace_);
    way.us = where(may_run & fits, way.terms.us(), kInfinite);
    const Mask clustered = may_run & may_cluster_ & (split.count <= double{kMostPerCluster});
    if (clustered.any()) keep(way, way_of(split, Reduction::cluster), clustered);
    keep(best, way, among);
    return way.us;
  }

  // From the place where a climb starts, as long as it gets better. Returns which got anywhere.
  Mask climb_up(Way<N>& best, const N& middle, Mask climbing) const {
    Mask rose = climbing & !climbing;
    N last = middle, place = start_;
    while (true) {
      place = least(place + 1.0, double(kSplits.size() - 1));
      const N us = try_split(best, split_at(place), climbing);
      climbing = climbing & (us < last);
      if (!climbing.any()) return rose;
      rose = rose | climbing;
      last = us;
    }
  }
  void climb_down(Way<N>& best, const Way<N>& unsplit, const N& middle, Mask climbing) const {
    N last = middle, place = start_;
    while (climbing.any()) {
      place = place - 1.0;
      const Mask at_end = climbing & (place <= 0.0);
      keep(best, unsplit, at_end);
      climbing = climbing & (place > 0.0);
      const N us = try_split(best, split_at(most(place, 0.0)), climbing);
      climbing = climbing & (us < last);
      last = us;
    }
  }

  const Product<N>& product_;
  Mask may_cluster_;
  double workspace_;
  N start_;  // place in kSplits
};

template <class T>
T laid_out_as(const void* rows) {
  T value;
  __builtin_memcpy(&value, rows, sizeof value);
  return value;
}

template <size_t kWidth>
[[gnu::flatten]] void search_group(const KernelGroup& group, const CostProblem& problem, double workspace, GroupWays& ways) {
  using N = Lanes<kWidth>;
  const auto kernel = laid_out_as<KernelNumbers<N>>(&group.numbers);
  const auto loads = laid_out_as<LoadNumbers<N>>(&group.loads[loads_index(group.formula, problem)]);
  const Product<N> product(group.formula, kernel, loads, problem);
  Way<N> way = Climb<kWidth>(product, N(group.may_cluster.data()), workspace).run();
  if (group.formula == Formula::batch) way.us = where((kernel.BM >= problem.m) & (kernel.BN >= problem.n), way.us, kInfinite);
  static_assert(sizeof ways == sizeof way);
  __builtin_memcpy(&ways, &way, sizeof way);
}

}  // namespace gemm::cost
