#include "dispatch/kernel_search.h"

#include <bit>

#include "dispatch/split_climb.h"

namespace gemm {
namespace {

// Numbers of one kernel, as they lie in its struct.
template <class Numbers, size_t kCount>
void put(const Numbers& numbers, size_t lane, std::array<LaneRow, kCount>& rows) {
  const auto values = std::bit_cast<std::array<double, kCount>>(numbers);
  for (size_t i = 0; i < kCount; ++i) rows[i][lane] = static_cast<float>(values[i]);
}

}  // namespace

void KernelGroup::add(const KernelCost& kernel, bool clusters) {
  // Lanes that are left have the last kernel too: numbers with which one can calculate.
  for (size_t lane = count; lane < kKernelsAtOnce; ++lane) {
    put(kernel.numbers, lane, numbers);
    for (size_t i = 0; i < kLoads; ++i) put(kernel.loads[i], lane, loads[i]);
    may_cluster[lane] = clusters ? 1 : 0;
  }
  ++count;
}

KernelSearch narrow_kernel_search() { return cost::search_group<4>; }

KernelSearch kernel_search() {
#if defined(GEMM_WIDE_VECTORS)
  if (__builtin_cpu_supports("avx2")) return wide_kernel_search();
#endif
  return narrow_kernel_search();
}

}  // namespace gemm
