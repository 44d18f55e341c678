// Persistent blocks with a copy warpgroup (LoadPath::warp_specialized and _k).
#pragma once

#include "dispatch/cost_families.h"
#include "kernels/launch_arithmetic.h"

namespace gemm::cost {

inline constexpr double kSpecializedSetupUs = 2.0;       // barriers, tensor maps, registers change hands (64 x 64 x 64: 2.1)
inline constexpr double kUnhidden = 0.15;                // of the issue slots where a scheduler has one computing warp
inline constexpr double kShareSetupUs = 2;               // stream-k: its flags, and waiting for the other blocks of a tile
inline constexpr double kPartWriteBytesPerUs = 100'000;  // of partial tiles, per SM
// By the block that adds them one after the other (prototype, 512 to 1536).
inline constexpr double kPartReadBytesPerUs = 60'000;

// How persistent blocks share the work: share_items (launch_arithmetic.h) in numbers, and of all launches together.
template <class N>
struct Grid {
  N blocks, whole_items, shared_tiles;
};
template <class N>
Grid<N> grid_of(const Product<N>& product, const Split<N>& split, Reduction reduction) {
  const N& places = product.kernel.blocks;
  const N& items = split.blocks;
  if (reduction != Reduction::stream_k) return {least(places, items), items, 0.0};
  const N waves = product.kernel.by_blocks.whole_parts(items);
  const N whole_items = where(items == waves * places, items, most(0.0, waves - 1.0) * places);
  const N shared_tiles = items - whole_items;
  const N blocks = whole(shared_tiles * split.stages * (1 / static_cast<double>(kLeastSharedStages)));
  return {where(whole_items > 0.0, places, most(1.0, least(blocks, places))), whole_items, shared_tiles};
}

// Stages of the busiest multiprocessor: whole tiles, and its share of the others.
template <class N>
N busiest_stages(const Grid<N>& grid, const Split<N>& split, const DivisorOf<N>& by_sms) {
  const N whole_stages = by_sms.parts(grid.whole_items) * split.stages;
  const N shared_stages = DivisorOf<N>(grid.blocks).parts(grid.shared_tiles * split.stages) * by_sms.parts(grid.blocks);
  return where(grid.whole_items > 0.0, whole_stages, 0.0) + where(grid.shared_tiles > 0.0, shared_stages, 0.0);
}

// Stream-k: a block writes its first and last part; the last block of a tile reads the parts of all.
template <class N>
N parts_us(const KernelNumbers<N>& kernel, const Grid<N>& grid) {
  const N parts = most(2.0, grid.blocks / most(1.0, grid.shared_tiles));
  const N one_block = kernel.tile_bytes * (2 / kPartWriteBytesPerUs + parts * (1 / kPartReadBytesPerUs));
  return where(grid.shared_tiles > 0.0, kShareSetupUs + one_block * kernel.by_sms.parts(grid.blocks), 0.0);
}

// But for the reduction of a split k, where stream-k does not share it.
template <class N>
Terms<N> specialized_terms(const Product<N>& product, const Split<N>& split, Reduction reduction) {
  const KernelNumbers<N>& kernel = product.kernel;
  const Grid<N> grid = grid_of(product, split, reduction);
  const N resident = kernel.by_sms.parts(grid.blocks), share = 1.0 / resident;
  const N stages = busiest_stages(grid, split, kernel.by_sms);
  const N warps = resident * kernel.computing_warps;

  Terms<N> terms;
  terms.compute = stages * product.slots * kernel.us_per_slot * (warps * warps) / (warps * warps - kUnhidden);
  terms.memory =
      most(memory_us(product, split, grid.blocks, stages * share), stages * product.loads.pipe_slots * kernel.us_per_slot);
  terms.latency = stages * share * kernel.latency_us;
  // Computing warps store their tile before they go on; other blocks of the multiprocessor hide it.
  const N store = kernel.by_sms.parts(split.blocks) * kernel.tile_bytes * (1 / kL2BytesPerUsPerSm) * share;
  terms.fixed = kLaunchUs + kPrologueUs + kSpecializedSetupUs + slices_us(kernel, split) + store + grid.blocks * kCtaUs;
  if (reduction == Reduction::stream_k) terms.reduction = parts_us(kernel, grid);
  return terms;
}

}  // namespace gemm::cost
