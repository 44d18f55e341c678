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

// Copies `Floats` floats from base + offset bytes to shared memory, where `on`; completes with the thread's copy groups. A
// copy of 16 bytes goes through L1 where told so, and smaller ones always do.
// Predicated inside the assembly, because a branch would cut the main loop into blocks (docs/performance.md).
template <int Floats, bool ThroughL1 = false, class Offset>
GEMM_DEVICE void copy_async(float* shared, const char* base, Offset offset, bool on) {
  const unsigned predicate = on;
  if constexpr (Floats == 4 && !ThroughL1)
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.cg.shared.global.L2::128B [%0], [%1], 16;}" ::"r"(
                     shared_address(shared)),
                 "l"(base + offset), "r"(predicate)
                 : "memory");
  else if constexpr (Floats == 4)
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.ca.shared.global.L2::128B [%0], [%1], 16;}" ::"r"(
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
template <int Floats, bool ThroughL1 = false, class Offset>
GEMM_DEVICE void copy_async_or_zero(float* shared, const char* base, Offset offset, bool valid, bool on) {
  const unsigned predicate = on;
  const int bytes = valid ? Floats * 4 : 0;
  if constexpr (Floats == 4 && !ThroughL1)
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %3;}" ::"r"(
                     shared_address(shared)),
                 "l"(base + offset), "r"(predicate), "r"(bytes)
                 : "memory");
  else if constexpr (Floats == 4)
    asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.ca.shared.global.L2::128B [%0], [%1], 16, %3;}" ::"r"(
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

// How every kernel begins, since it may be launched while its predecessor on the stream still runs (cuda_device.cpp): waits
// until all memory of the predecessor is written, then lets its own successor come. The other way round several successors
// would gather on the multiprocessors that are free, and crowd there (256 x 256 x 256: 5.7 us, against 2.9 and, without any
// overlap, 3.4).
GEMM_DEVICE void begin_after_predecessors() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

GEMM_DEVICE void block_barrier() { __syncthreads(); }

// Barriers of some of a block's threads: of a warp, and numbered ones (from 1 on) of `threads` threads.
GEMM_DEVICE void warp_barrier() { __syncwarp(); }
template <int Id>
GEMM_DEVICE void named_barrier(int threads) {
  asm volatile("bar.sync %0, %1;" ::"n"(Id), "r"(threads) : "memory");
}

// A byte address in shared memory, in the 32 bits that the hardware's own instructions take.
using SharedPointer = unsigned;
GEMM_DEVICE SharedPointer shared_pointer(const float* shared) { return shared_address(shared); }

// A 16-byte load from shared memory that the compiler neither moves among its like nor merges.
GEMM_DEVICE void load_quad(SharedPointer p, float& x, float& y, float& z, float& w) {
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(x), "=f"(y), "=f"(z), "=f"(w) : "r"(p));
}

// And one of 8 bytes, which ptxas would merge with its neighbours.
GEMM_DEVICE void load_pair(SharedPointer p, float& x, float& y) {
  asm volatile("ld.volatile.shared.v2.f32 {%0,%1}, [%2];" : "=f"(x), "=f"(y) : "r"(p));
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
// mbarriers, 8 bytes each. A phase ends when all threads have arrived and all announced bytes have come.
GEMM_DEVICE void barrier_init(SharedPointer barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// Makes initialised barriers visible to the copy engine; a block barrier makes them visible to the other threads.
GEMM_DEVICE void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
GEMM_DEVICE void barrier_arrive(SharedPointer barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
GEMM_DEVICE void barrier_arrive_expecting(SharedPointer barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// This thread's cp.async copies so far count as one arrival once they are done.
GEMM_DEVICE void barrier_arrive_after_copies(SharedPointer barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
// Waits until the phase with this parity has ended. One assembly block with its loop: as a C++ loop it cuts the main loop
// into blocks, and register conflicts grow from 105 to 149 cycles per 1,024 FMAs (static score of the prototype).
GEMM_DEVICE void barrier_wait(SharedPointer barrier, unsigned parity) {
  asm volatile(
      "{.reg .pred p;\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra WAIT;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// A box of a tensor map, from element (x, line, batch) on, by the tensor copy engine.
GEMM_DEVICE void copy_box(SharedPointer shared, const TensorMap& map, int x, int line, int batch, SharedPointer barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
          "r"(shared),
      "l"(&map), "r"(barrier), "r"(x), "r"(line), "r"(batch)
      : "memory");
}

// A warpgroup gives registers back or takes them (sm_90a).
template <int Registers>
GEMM_DEVICE void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
GEMM_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}
#endif

// Thread-block clusters (sm_90+). No guard like the one above: every GPU's tile kernel names them, and only those that are
// launched as clusters call them.
//
// A barrier of all threads of the cluster. What they have written to shared memory, the others see behind it.
GEMM_DEVICE void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// 16 bytes from the same place in the shared memory of block `rank` of the cluster, or -0 four times where `on` is false:
// added, it leaves every sum as it is. Predicated inside the assembly, so that several loads can be on their way at once.
GEMM_DEVICE float4 load_peer_quad(SharedPointer p, int rank, bool on) {
  const unsigned predicate = on;
  float4 v;
  asm volatile(
      "{.reg .pred p; .reg .u32 peer; setp.ne.u32 p, %6, 0;\n"
      "mov.b32 %0, 0f80000000; mov.b32 %1, 0f80000000; mov.b32 %2, 0f80000000; mov.b32 %3, 0f80000000;\n"
      "@p mapa.shared::cluster.u32 peer, %4, %5;\n"
      "@p ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [peer];}"
      : "=&f"(v.x), "=&f"(v.y), "=&f"(v.z), "=&f"(v.w)
      : "r"(p), "r"(rank), "r"(predicate)
      : "memory");
  return v;
}

// The same, but volatile for ptxas too, which else merges several loads of the same address into one.
GEMM_DEVICE void load_shared_fixed(const float* shared, float& x, float& y, float& z, float& w) {
  asm volatile("ld.volatile.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
               : "r"(shared_address(shared)));
}

// factor * x, computed here and not where the compiler would share it among several stores: a shared product takes the
// accumulator's own register, and 16-byte stores of it then decide the register banks of the main loop. Rounded in any case
// (.rn): ptxas would fuse it with an addition that follows, and the slices' sum would not be the emulator's to the last bit.
GEMM_DEVICE float scaled(float factor, float x) {
  float product;
  asm volatile("mul.rn.f32 %0, %1, %2;" : "=f"(product) : "f"(factor), "f"(x));
  return product;
}

// The largest power of two that is not above `n`, which is 1 or more.
GEMM_DEVICE int power_of_two_within(int n) { return 1 << (31 - __clz(n)); }

// Makes the compiler forget where a value came from, so that what is computed from it later is computed anew instead of
// being kept in registers.
GEMM_DEVICE void forget(int& value) { asm volatile("" : "+r"(value)); }

// Loads that bypass L1, for data that another block has written.
GEMM_DEVICE float4 load_from_l2(const float4* p) { return __ldcg(p); }

// Makes this thread's writes visible to the device before anything that follows.
GEMM_DEVICE void device_fence() { __threadfence(); }

// Loads of inputs that are read once: they stay out of L1, and L2 fetches the 256 bytes around them (sm_80).
GEMM_DEVICE void load_once(const float* p, float (&to)[4]) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
               : "l"(p));
}
GEMM_DEVICE void load_once(const float* p, float (&to)[2]) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v2.f32 {%0,%1}, [%2];" : "=f"(to[0]), "=f"(to[1]) : "l"(p));
}
GEMM_DEVICE void load_once(const float* p, float (&to)[1]) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.f32 %0, [%1];" : "=f"(to[0]) : "l"(p));
}

}  // namespace gemm
#endif
