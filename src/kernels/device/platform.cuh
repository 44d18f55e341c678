// What kernel code needs from its platform, on a GPU (NVRTC) and on the host (emulator): thread indices, barriers, shared
// memory, asynchronous copies and atomics. Kernels use only this, the two headers below and plain C++.
#pragma once

#include "kernels/kernel_args.h"
#include "kernels/kernel_config.h"

namespace gemm {

// The type of byte offsets inside a tile. 32 bits save registers and additions and reach leading dimensions of a few million
// (launch.cpp has the rule).
template <bool Long>
struct LongOffsetType {
  using type = unsigned;
};
template <>
struct LongOffsetType<true> {
  using type = unsigned long long;
};
template <bool Long>
using LongOffset = typename LongOffsetType<Long>::type;

}  // namespace gemm

#ifdef GEMM_EMULATE
#include "emulator/platform_host.h"
#else

#define GEMM_DEVICE __device__ __forceinline__
#define GEMM_UNROLL _Pragma("unroll")
#define GEMM_NO_UNROLL _Pragma("unroll 1")

namespace gemm {

// Dynamic shared memory of the block, 1024-byte aligned.
GEMM_DEVICE float* dynamic_shared() {
  extern __shared__ __align__(1024) float gemm_shared_memory[];
  return gemm_shared_memory;
}

GEMM_DEVICE unsigned shared_address(const void* pointer) { return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }

// Copies `Floats` floats from base + offset bytes to shared memory, where `on`; completes with the thread's copy groups.
// Predicated inside the assembly, because a branch would cut the main loop into blocks (docs/performance.md).
template <int Floats, class Offset>
GEMM_DEVICE void copy_async(float* shared, const char* base, Offset offset, bool on) {
  const unsigned predicate = on;
  if constexpr (Floats == 4)
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.cg.shared.global.L2::128B [%0], [%1], 16;}" ::"r"(
                     shared_address(shared)),
                 "l"(base + offset), "r"(predicate)
                 : "memory");
  else
    asm volatile(
        "{.reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.ca.shared.global [%0], [%1], %3;}" ::"r"(shared_address(shared)),
        "l"(base + offset), "r"(predicate), "n"(Floats * 4)
        : "memory");
}

// The same, but writes zeros and reads nothing where `valid` is false.
template <int Floats, class Offset>
GEMM_DEVICE void copy_async_or_zero(float* shared, const char* base, Offset offset, bool valid, bool on) {
  const unsigned predicate = on;
  const int bytes = valid ? Floats * 4 : 0;
  if constexpr (Floats == 4)
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %3;}" ::"r"(
                     shared_address(shared)),
                 "l"(base + offset), "r"(predicate), "r"(bytes)
                 : "memory");
  else
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.ca.shared.global [%0], [%1], %4, %3;}" ::"r"(
                     shared_address(shared)),
                 "l"(base + offset), "r"(predicate), "r"(bytes), "n"(Floats * 4)
                 : "memory");
}

GEMM_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `Pending` of this thread's newest copy groups are unfinished.
template <int Pending>
GEMM_DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

GEMM_DEVICE void block_barrier() { __syncthreads(); }

// A 16-byte load from shared memory that the compiler neither moves nor merges with another.
GEMM_DEVICE void load_shared_fixed(const float* shared, float& x, float& y, float& z, float& w) {
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(x), "=f"(y), "=f"(z), "=f"(w) : "r"(shared_address(shared)));
}

// Loads that bypass L1, for data that another block has written.
GEMM_DEVICE float4 load_from_l2(const float4* p) { return __ldcg(p); }

// Makes this thread's writes visible to the device before anything that follows.
GEMM_DEVICE void device_fence() { __threadfence(); }

}  // namespace gemm
#endif
