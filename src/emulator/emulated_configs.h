// The configurations that are compiled for the host. Small tiles, so that small problems already have edges and several
// blocks; together they cover every load path, FMA order, accumulator start, slices, ring depth and vector width of a
// fragment.
#pragma once

#include "kernels/kernel_config.h"

namespace gemm {

inline constexpr KernelConfig kEmulatedConfigs[] = {
    // BM, BN, BK, WM, WN, WNITER, TM, TN, stages, slices, min_blocks, load, order, acc_init
    {64, 64, 16, 32, 32, 1, 4, 8, 3, 1, 1, LoadPath::async_transpose, FmaOrder::rows, AccInit::shifted},
    {32, 64, 8, 32, 32, 2, 4, 4, 2, 1, 1, LoadPath::async_transpose, FmaOrder::columns, AccInit::shifted},
    {32, 32, 16, 16, 32, 1, 4, 4, 4, 1, 2, LoadPath::async, FmaOrder::rows, AccInit::plain},
    {64, 16, 32, 32, 16, 1, 4, 4, 3, 2, 1, LoadPath::async, FmaOrder::columns, AccInit::plain},
    {16, 16, 32, 16, 16, 1, 2, 4, 3, 8, 1, LoadPath::async, FmaOrder::rows, AccInit::plain},
    {32, 8, 64, 32, 8, 1, 4, 2, 2, 4, 1, LoadPath::async_transpose, FmaOrder::rows, AccInit::plain},
    {64, 64, 8, 32, 32, 1, 8, 4, 2, 1, 1, LoadPath::register_staged, FmaOrder::rows, AccInit::plain},
    {32, 32, 16, 32, 16, 2, 8, 1, 2, 2, 1, LoadPath::register_staged, FmaOrder::columns, AccInit::plain},
    {32, 32, 16, 16, 32, 1, 4, 4, 3, 1, 1, LoadPath::tma, FmaOrder::rows, AccInit::shifted},
    {64, 16, 64, 32, 16, 1, 4, 4, 2, 4, 1, LoadPath::tma, FmaOrder::columns, AccInit::plain},
    {64, 64, 16, 32, 32, 2, 4, 4, 3, 1, 1, LoadPath::warp_specialized, FmaOrder::columns, AccInit::shifted},
    {48, 128, 8, 48, 32, 1, 4, 4, 2, 1, 2, LoadPath::warp_specialized, FmaOrder::rows, AccInit::plain},
    {32, 64, 32, 32, 32, 2, 4, 4, 2, 2, 1, LoadPath::warp_specialized, FmaOrder::rows, AccInit::shifted},
    {32, 64, 32, 32, 32, 2, 4, 4, 2, 2, 1, LoadPath::warp_specialized_k, FmaOrder::columns, AccInit::plain},
    // Fragments in place, of either order.
    {96, 256, 8, 96, 64, 4, 4, 4, 2, 1, 1, LoadPath::warp_specialized, FmaOrder::columns, AccInit::shifted},
    {256, 96, 8, 128, 48, 3, 4, 4, 2, 1, 1, LoadPath::warp_specialized, FmaOrder::rows, AccInit::plain},
};
// Which of them are compiled for clusters too: one of cp.async and one of tensor copies, since every instance costs compile
// time.
constexpr bool emulated_in_cluster(const KernelConfig& c) {
  return c.BM == 32 && c.BN == 32 && (c.load == LoadPath::async || c.load == LoadPath::tma);
}
// And with pointers on the GPU (KernelVariant::indirect): the two that are default kernels of dispatch, and one of each load
// path that serves them in its own way.
constexpr bool emulated_indirectly(const KernelConfig& c) {
  if (c.load == LoadPath::register_staged) return true;
  if (c.load == LoadPath::warp_specialized) return c.BM == 64;
  return c.BM == 32 && c.BN == 32 && c.acc_init == AccInit::shifted;  // tma, and what its unaligned operands take
}
// And with an epilogue (KernelVariant::epilogue): whatever has a way of its own to end a tile, for NN and TN (tma for NT
// too, which products on copies are), with all loads of 16 bytes or all of 4. Those that are default kernels of dispatch
// have each epilogue, the others the one that does all. With AddressSanitizer an instance compiles three times as long, and
// few of the kernels have one. With ThreadSanitizer none has: an epilogue shares nothing between threads.
enum class EmulatedEpilogues { none, few, all };
#if defined(__SANITIZE_THREAD__)
inline constexpr auto kEmulatedEpilogues = EmulatedEpilogues::none;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr auto kEmulatedEpilogues = EmulatedEpilogues::few;
#else
inline constexpr auto kEmulatedEpilogues = EmulatedEpilogues::all;
#endif
constexpr bool has_emulated_epilogue(bool is_one_of_few) {
  return kEmulatedEpilogues == EmulatedEpilogues::all || (kEmulatedEpilogues == EmulatedEpilogues::few && is_one_of_few);
}
constexpr bool emulated_with_epilogue(const KernelConfig& c) {
  return c.load != LoadPath::async_transpose && has_emulated_epilogue(c.BM == 32 && c.BN == 32);
}
constexpr bool emulated_with_all_epilogues(const KernelConfig& c) {
  return has_emulated_epilogue(false) && c.family == Family::tile && c.load == LoadPath::register_staged;
}
// The last also with pointers on the GPU.
constexpr bool emulated_indirectly_with_epilogue(const KernelConfig& c) {
  return has_emulated_epilogue(false) && c.load == LoadPath::register_staged && c.slices > 1;
}
inline constexpr int kEmulatedConfigCount = sizeof(kEmulatedConfigs) / sizeof(kEmulatedConfigs[0]);

// Under ThreadSanitizer only what its tests run is compiled: those of TSAN_CONFIGS in ./dev, and the kernels that contexts
// use in the tests with several threads (the first one, and the default kernels). Under AddressSanitizer not the last two,
// which ./dev does not run there (UNSANITIZED_TESTS).
constexpr bool is_compiled(int index) {
#ifdef __SANITIZE_THREAD__
  constexpr int kUsed[] = {0, 1, 3, 6, 7, 8, 10};
  for (const int used : kUsed)
    if (index == used) return true;
  return false;
#elif defined(__SANITIZE_ADDRESS__)
  return index < kEmulatedConfigCount - 2;
#else
  return index < kEmulatedConfigCount;
#endif
}

constexpr bool all_emulated_configs_valid() {
  for (const KernelConfig& config : kEmulatedConfigs)
    if (why_invalid(config, DeviceLimits{}) != nullptr) return false;
  return true;
}
static_assert(all_emulated_configs_valid());

}  // namespace gemm
