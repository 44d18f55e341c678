// The configurations of the stream family that are compiled for the host, some with A and some with B as the long operand.
// Together they have one to 32 lanes along k, one and more slices, chunks of one and of more rounds, 1 to 16 columns, and
// both ways of ending: straight to C, and through shared memory.
#pragma once

#include "emulator/emulated_configs.h"

namespace gemm {

inline constexpr KernelConfig kEmulatedStreamConfigs[] = {
    // BM, BN, BK, WM, WN, WNITER, TM, TN, stages, slices, min_blocks, load, order, acc_init, family
    {4, 1, 512, 4, 1, 1, 4, 1, 2, 2, 1, LoadPath::register_staged, FmaOrder::rows, AccInit::plain, Family::stream},
    {64, 2, 64, 64, 2, 1, 8, 2, 2, 2, 1, LoadPath::register_staged, FmaOrder::rows, AccInit::plain, Family::stream},
    {32, 4, 192, 16, 4, 1, 4, 4, 3, 2, 1, LoadPath::register_staged, FmaOrder::rows, AccInit::plain, Family::stream},
    {128, 16, 16, 128, 16, 1, 4, 16, 4, 1, 1, LoadPath::register_staged, FmaOrder::rows, AccInit::plain, Family::stream},
    {4, 32, 96, 4, 16, 1, 4, 4, 3, 1, 1, LoadPath::register_staged, FmaOrder::columns, AccInit::plain, Family::stream},
    {8, 128, 16, 8, 128, 1, 8, 4, 1, 1, 1, LoadPath::register_staged, FmaOrder::columns, AccInit::plain, Family::stream},
    {8, 128, 32, 8, 128, 1, 8, 4, 2, 4, 1, LoadPath::register_staged, FmaOrder::columns, AccInit::plain, Family::stream},
};
// The one that is compiled with pointers on the GPU too (KernelVariant::indirect).
inline constexpr int kEmulatedIndirectStream = 1;
// And with an epilogue: through shared memory, and straight to C with either operand as the long one. emulated_configs.h
// says for which layouts.
constexpr bool emulated_stream_with_epilogue(int index) {
  return has_emulated_epilogue(index == 1) && (index == 1 || index == 3 || index == 5);
}
inline constexpr int kEmulatedStreamConfigCount = sizeof(kEmulatedStreamConfigs) / sizeof(kEmulatedStreamConfigs[0]);

constexpr bool all_emulated_stream_configs_valid() {
  for (const KernelConfig& config : kEmulatedStreamConfigs)
    if (why_invalid(config, DeviceLimits{}) != nullptr) return false;
  return true;
}
static_assert(all_emulated_stream_configs_valid());

}  // namespace gemm
