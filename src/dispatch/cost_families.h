// The families' parts of the cost model, and what they share. Only for cost_*.cpp and what works with their terms
// (learned_model.cpp, least_times.cpp, split_climb.cpp).
#pragma once

#include <algorithm>
#include <cmath>

#include "dispatch/cost_model.h"

namespace gemm::cost {

// Constants measured on an H200 (docs/performance.md); bandwidths are per multiprocessor, so that they scale with the GPU.
inline constexpr double kDramBytesPerUsPerSm = 32'600;  // 4.3 TB/s over 132
inline constexpr double kL2BytesPerUsPerSm = 60'000;    // about 30 bytes a cycle
inline constexpr double kMemoryLatencyUs = 0.85;        // under load
inline constexpr double kLaunchUs = 1.8;                // shortest kernel seen that does something
inline constexpr double kPrologueUs = 0.9;              // first stage arrives, accumulators leave
inline constexpr double kSpecializedSetupUs = 2.0;      // barriers, tensor maps, registers change hands (64 x 64 x 64: 2.1)
inline constexpr double kLeastReductionUs = 0.6;        // of a split k, in a cluster
inline constexpr double kCtaUs = 0.0006;                // of the whole device, per block
inline constexpr double kConflictShare = 1.04;  // issue slots of an FMA with register-bank conflicts, operands rows fast
inline constexpr double kSlotsPerFragmentRegister = 0.7;  // an LDS.128 costs 2.9 to 3.4 issue slots
inline constexpr double kLanesPerSm = 128;                // 4 schedulers of 32

inline double clock_mhz(const DeviceInfo& device) { return std::max(1, device.sm_clock_mhz); }

// The variant of the kernel that loads so many floats (by their number in slots: 0, 1, 2) of each operand.
KernelVariant variant_with(const KernelConfig& config, int ops, int vec_a, int vec_b);
inline size_t slots_index(int ops, int vec_a, int vec_b) {
  return static_cast<size_t>(ops) * 9 + static_cast<size_t>(vec_a) * 3 + static_cast<size_t>(vec_b);
}

// Device memory, as far as the copies of `active` blocks in flight can use it (Little's law), and L2. `depth` is how many
// stages a block has to copy in a row.
inline double memory_us(const ProductCost& cost, const Split& split, double active, double depth) {
  const KernelCost& kernel = cost.kernel;
  const double in_flight = active * kernel.stage_bytes * std::min(kernel.stages_ahead, depth);
  const double dram = std::min(kDramBytesPerUsPerSm * kernel.sm_count, in_flight * (1 / kMemoryLatencyUs));
  const double l2_bytes = split.blocks * split.stages * kernel.stage_bytes + cost.problem.output_bytes;
  return std::max(cost.traffic / dram, l2_bytes / (kL2BytesPerUsPerSm * std::min(active, kernel.sm_count)));
}

// The slices' tiles go to shared memory and come back, in every block of the busiest multiprocessor.
inline double slices_us(const KernelCost& kernel, const Split& split) {
  return kernel.slices_us * kernel.everywhere.by_sms.parts(split.blocks);
}

// Partial tiles are written, read and added, by a ticket, a second kernel or a cluster; 0 where k is not split.
double split_us(const ProductCost& cost, const Split& split, Reduction reduction);

// The persistent blocks of a specialized kernel.
PersistentGrid grid_of(const ProductCost& cost, const Split& split, Reduction reduction);

// Launch, and what a block does before and after its stages.
double least_fixed_us(const KernelConfig& config);

// By family; the tile family's persistent kernel has a model of its own. `prepare_` fills in the slots, `slots_of_` looks up
// or adds up what a stage of this product takes.
void prepare_tile(KernelCost& kernel);
void prepare_specialized(KernelCost& kernel);
double slots_of_tile(const ProductCost& cost);
double slots_of_specialized(const ProductCost& cost);
CostTerms tile_terms(const ProductCost& cost, const Split& split, Reduction reduction);
CostTerms specialized_terms(const ProductCost& cost, const Split& split, Reduction reduction);
CostTerms stream_terms(const ProductCost& cost, const Split& split, Reduction reduction);
CostTerms batch_terms(const ProductCost& cost);

}  // namespace gemm::cost
