// What the formulas of the cost model share; those of each family are in cost_tile.h, cost_specialized.h and cost_direct.h.
// Templates on the number (cost_numbers.h). Only for cost_*.cpp, learned_model.cpp and split_climb.h.
#pragma once

#include <algorithm>

#include "dispatch/cost_model.h"

namespace gemm::cost {

// Constants measured on an H200 (docs/performance.md); bandwidths are per multiprocessor, so that they scale with the GPU.
inline constexpr double kDramBytesPerUsPerSm = 32'600;  // 4.3 TB/s over 132
inline constexpr double kL2BytesPerUsPerSm = 60'000;    // about 30 bytes a cycle
inline constexpr double kMemoryLatencyUs = 0.85;        // under load
inline constexpr double kLaunchUs = 1.8;                // shortest kernel seen that does something
inline constexpr double kPrologueUs = 0.9;              // first stage arrives, accumulators leave
inline constexpr double kCtaUs = 0.0006;                // of the whole device, per block
inline constexpr double kConflictShare = 1.04;  // issue slots of an FMA with register-bank conflicts, operands rows fast
inline constexpr double kSlotsPerFragmentRegister = 0.7;  // an LDS.128 costs 2.9 to 3.4 issue slots
inline constexpr double kLanesPerSm = 128;                // 4 schedulers of 32
inline constexpr double kSecondKernelUs = 1.8;            // its launch in a graph, and its first reads
inline constexpr double kTicketUs = 1.2;                  // fence, atomic, first read back
inline constexpr double kClusterUs = 0.6;                 // its two barriers, first read of a peer
inline constexpr double kPeerBytesPerUs = 60'000;         // that a block reads from its peers' shared memory

inline double clock_mhz(const DeviceInfo& device) { return std::max(1, device.sm_clock_mhz); }

// The variant of the kernel that loads so many floats (by their number in CostProblem: 0, 1, 2) of each operand.
KernelVariant variant_with(const KernelConfig& config, int ops, int vec_a, int vec_b);
// Share of C that is stored again, as it were: stores of 8 adjacent rows fill half of each 32-byte sector at a time.
inline double stored_again(const KernelConfig& c, int ops) {
  return c.TM == 8 && !operand_layout(c, c.BM, (ops & 2) != 0, 4).k_fast ? 1 : 0;
}

// Fill in how a kernel loads operands of each kind.
void prepare_tile(KernelCost& kernel);
void prepare_specialized(KernelCost& kernel);

// Device memory, as far as the copies of `active` blocks in flight can use it (Little's law), and L2. `depth` is how many
// stages a block has to copy in a row.
template <class N>
N memory_us(const Product<N>& product, const Split<N>& split, const N& active, const N& depth) {
  const KernelNumbers<N>& kernel = product.kernel;
  const CostProblem& p = product.problem;
  const N traffic = p.bytes + product.loads.stored_again * p.output_bytes;
  const N in_flight = active * kernel.stage_bytes * least(kernel.stages_ahead, depth);
  const N dram = least(kDramBytesPerUsPerSm * kernel.sm_count, in_flight * (1 / kMemoryLatencyUs));
  const N l2_bytes = split.blocks * split.stages * kernel.stage_bytes + p.output_bytes;
  return most(traffic / dram, l2_bytes / (kL2BytesPerUsPerSm * least(active, kernel.sm_count)));
}

// The slices' tiles go to shared memory and come back, in every block of the busiest multiprocessor.
template <class N>
N slices_us(const KernelNumbers<N>& kernel, const Split<N>& split) {
  return kernel.slices_us * kernel.by_sms.parts(split.blocks);
}

// Partial tiles are written, read and added, by a ticket, a second kernel or a cluster.
template <class N>
N split_us(const Product<N>& product, const Split<N>& split, Reduction reduction) {
  const KernelNumbers<N>& kernel = product.kernel;
  // Each block reads its share of all the parts, which is as much as one tile.
  if (reduction == Reduction::cluster)
    return kClusterUs + kernel.by_sms.parts(split.blocks) * kernel.tile_bytes * (1 / kPeerBytesPerUs);
  const N us_per_tile = kernel.tile_bytes * (1 / kL2BytesPerUsPerSm);   // by one multiprocessor
  const N all_us = split.blocks * us_per_tile * kernel.by_sms.inverse;  // by all of them
  const N write = most(us_per_tile, all_us);
  if (reduction == Reduction::kernel) return kSecondKernelUs + write + all_us;
  // The last block of a tile reads all partial tiles alone.
  return kTicketUs + write + kernel.by_sms.parts(product.tiles) * split.count * us_per_tile;
}

}  // namespace gemm::cost
