// The batch configurations that are compiled for the host: one chunk and rings, both ways to C, a matrix that lines of
// pieces do not divide evenly.
#pragma once

#include "emulator/emulated_configs.h"

namespace gemm {

inline constexpr KernelConfig kEmulatedBatchConfigs[] = {
    // BM, BN, BK, WM, WN, WNITER, TM, TN, stages, slices, min_blocks, load, order, acc_init, family
    {16, 16, 16, 16, 16, 1, 4, 2, 1, 4, 1, LoadPath::async, FmaOrder::rows, AccInit::plain, Family::batch},
    {8, 8, 8, 8, 8, 1, 1, 2, 3, 8, 1, LoadPath::async, FmaOrder::rows, AccInit::plain, Family::batch},
    {24, 32, 24, 24, 32, 2, 1, 4, 2, 3, 1, LoadPath::async, FmaOrder::rows, AccInit::plain, Family::batch},
};
// The one that is compiled with pointers on the GPU too (KernelVariant::indirect).
inline constexpr int kEmulatedIndirectBatch = 0;
// And with an epilogue: both ways to C. emulated_configs.h says for which layouts.
constexpr bool emulated_batch_with_epilogue(int index) {
  return has_emulated_epilogue(index == 0) && (index == 0 || index == 2);
}
inline constexpr int kEmulatedBatchConfigCount = sizeof(kEmulatedBatchConfigs) / sizeof(kEmulatedBatchConfigs[0]);

constexpr bool all_emulated_batch_configs_valid() {
  for (const KernelConfig& config : kEmulatedBatchConfigs)
    if (why_invalid(config, DeviceLimits{}) != nullptr) return false;
  return true;
}
static_assert(all_emulated_batch_configs_valid());

}  // namespace gemm
