// The tile family with one block for each tile and split: cp.async, register staging, and the tensor copy engine.
#pragma once

#include "dispatch/cost_families.h"

namespace gemm::cost {

inline constexpr double kUnusedShare = 0.3;   // of the issue slots, with one warp of 64 results a thread for each scheduler
inline constexpr double kWaveUs = 0.5;        // of each further wave: its first stage and its stores, partly hidden
inline constexpr double kManyPerCluster = 3;  // blocks. From here on clusters leave gaps in their GPC

// Multiprocessors that take part, and the blocks that fit them at a time.
template <class N>
struct Places {
  N blocks;
  DivisorOf<N> by_blocks, by_sms;
};
template <class N, class Mask>
Places<N> places_of(const KernelNumbers<N>& kernel, const Split<N>& split, const Mask& in_clusters) {
  const auto gaps = in_clusters & (split.count >= kManyPerCluster);
  return {where(gaps, kernel.clustered_blocks, kernel.blocks), where(gaps, kernel.by_clustered_blocks, kernel.by_blocks),
          where(gaps, kernel.by_clustered_sms, kernel.by_sms)};
}

// But for the reduction of a split k.
template <class N, class Mask>
Terms<N> tile_terms(const Product<N>& product, const Split<N>& split, const Mask& in_clusters) {
  const KernelNumbers<N>& kernel = product.kernel;
  const Places<N> places = places_of(kernel, split, in_clusters);
  const N waves = places.by_blocks.parts(split.blocks);
  const N rounds = places.by_sms.parts(split.blocks);  // blocks that the busiest multiprocessor gets
  // Independent FMAs of one thread hide latency as other warps do; few warps leave issue slots unused.
  const N chains = most(1.0, least(kernel.resident, rounds) * kernel.chains);
  const N slots = split.stages * product.slots * most(1.0, rounds * kernel.warps);
  Terms<N> terms;
  terms.fixed = kLaunchUs + kPrologueUs + product.loads.setup_us + kWaveUs * (waves - 1.0) + slices_us(kernel, split) +
                split.blocks * kCtaUs;
  terms.compute = slots * kernel.us_per_slot * chains / (chains - kUnusedShare);
  terms.memory = memory_us(product, split, least(split.blocks, places.blocks), split.stages);
  terms.latency = waves * split.stages * kernel.latency_us;
  return terms;
}

}  // namespace gemm::cost
