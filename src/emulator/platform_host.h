// platform.cuh for the host: kernels run as plain C++, one fibre or thread per CUDA thread. Everything is in namespace gemm,
// so nothing here can clash with CUDA's own headers.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

#include "emulator/block_state.h"
#include "emulator/emulated_tensor_map.h"

#define GEMM_DEVICE inline
#define GEMM_UNROLL
#define GEMM_NO_UNROLL

namespace gemm {

struct float4 {
  float x, y, z, w;
};
struct float2 {
  float x, y;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};

// A cp.async on its way.
struct PendingCopy {
  float* shared;
  const char* source;
  int floats;
  bool valid;  // false: zeros
};

// State of one CUDA thread.
struct EmulatedThread {
  Index3 thread_index, block_index, block_size, grid_size;
  float* shared = nullptr;
  BlockState* block = nullptr;
  ClusterState* cluster = nullptr;
  std::vector<PendingCopy> open_group;          // copies since the last commit
  std::deque<std::vector<PendingCopy>> groups;  // committed, oldest first
};

// The thread that is running; the executor sets it before it enters or resumes a kernel.
EmulatedThread*& current_emulated_thread();
inline EmulatedThread& emulated_thread() { return *current_emulated_thread(); }

#define threadIdx (::gemm::emulated_thread().thread_index)
#define blockIdx (::gemm::emulated_thread().block_index)
#define blockDim (::gemm::emulated_thread().block_size)
#define gridDim (::gemm::emulated_thread().grid_size)

inline float* dynamic_shared() { return emulated_thread().shared; }
inline void block_barrier() { emulated_thread().block->block_barrier(); }

// Barriers of some of a block's threads: of a warp, and numbered ones of `threads` threads.
inline constexpr int kFirstWarpBarrier = 1000;
inline void warp_barrier() {
  emulated_thread().block->counting_barrier(kFirstWarpBarrier + static_cast<int>(threadIdx.x) / 32, 32);
}
template <int Id>
void named_barrier(int threads) {
  emulated_thread().block->counting_barrier(Id, threads);
}

// A byte address in shared memory.
using SharedPointer = char*;
inline SharedPointer shared_pointer(float* shared) { return reinterpret_cast<char*>(shared); }
inline void load_quad(SharedPointer p, float& x, float& y, float& z, float& w) {
  const auto* floats = reinterpret_cast<const float*>(p);
  x = floats[0], y = floats[1], z = floats[2], w = floats[3];
}
inline void load_pair(SharedPointer p, float& x, float& y) {
  const auto* floats = reinterpret_cast<const float*>(p);
  x = floats[0], y = floats[1];
}

// mbarriers: the 8 bytes in shared memory hold a pointer to the emulated one.
inline EmulatedBarrier& barrier_at(SharedPointer p) { return **reinterpret_cast<EmulatedBarrier**>(p); }
inline void barrier_init(SharedPointer p, int arrivals) {
  *reinterpret_cast<EmulatedBarrier**>(p) = emulated_thread().block->new_barrier(arrivals);
}
inline void barrier_init_fence() {}
inline void barrier_arrive(SharedPointer p) { emulated_thread().block->arrive(barrier_at(p)); }
inline void barrier_arrive_expecting(SharedPointer p, int bytes) { emulated_thread().block->arrive(barrier_at(p), bytes); }
inline void barrier_wait(SharedPointer p, unsigned parity) { emulated_thread().block->wait(barrier_at(p), parity); }

// All threads of the cluster; and 16 bytes from the same place in the shared memory of one of its blocks, or -0.
inline void cluster_barrier() { emulated_thread().cluster->barrier(); }
inline float4 load_peer_quad(SharedPointer p, int rank, bool on) {
  const EmulatedThread& thread = emulated_thread();
  if (!on) return {-0.0f, -0.0f, -0.0f, -0.0f};
  const auto offset = reinterpret_cast<const float*>(p) - thread.shared;
  const float* peer = thread.cluster->shared(static_cast<size_t>(rank)) + offset;
  return {peer[0], peer[1], peer[2], peer[3]};
}

// Registers are the host compiler's business.
template <int Registers>
void give_registers() {}
template <int Registers>
void take_registers() {}

// Asynchronous copies are as late as the hardware may make them, and as early as they may do harm: the destination is NaN
// from the moment of the call, the data arrives in wait_copies.
template <int Floats, bool ThroughL1 = false, class Offset>
void copy_async_or_zero(float* shared, const char* base, Offset offset, bool valid, bool on) {
  if (!on) return;
  for (int i = 0; i < Floats; ++i) shared[i] = std::numeric_limits<float>::quiet_NaN();
  emulated_thread().open_group.push_back({shared, base + offset, Floats, valid});
}
template <int Floats, bool ThroughL1 = false, class Offset>
void copy_async(float* shared, const char* base, Offset offset, bool on) {
  copy_async_or_zero<Floats, ThroughL1>(shared, base, offset, true, on);
}
inline void commit_copies() {
  EmulatedThread& thread = emulated_thread();
  thread.groups.push_back(std::move(thread.open_group));
  thread.open_group.clear();
}
inline void complete_copy(const PendingCopy& copy) {
  const size_t bytes = sizeof(float) * static_cast<size_t>(copy.floats);
  if (copy.valid)
    std::memcpy(copy.shared, copy.source, bytes);
  else
    std::memset(copy.shared, 0, bytes);
}
template <int Pending>
void wait_copies() {
  EmulatedThread& thread = emulated_thread();
  for (; thread.groups.size() > Pending; thread.groups.pop_front())
    for (const PendingCopy& copy : thread.groups.front()) complete_copy(copy);
}

// This thread's cp.async copies so far count as one arrival once they are done.
inline void barrier_arrive_after_copies(SharedPointer p) {
  EmulatedThread& thread = emulated_thread();
  barrier_at(p).announce(0, [copies = std::move(thread.open_group)] {
    for (const PendingCopy& copy : copies) complete_copy(copy);
  });
  thread.open_group.clear();
}

// A box of a tensor map, from element (x, line, batch) on.
inline void copy_box(SharedPointer shared, const TensorMap& map, int x, int line, int batch, SharedPointer barrier) {
  auto* to = reinterpret_cast<float*>(shared);
  const EmulatedTensorMap tensor = emulated_tensor_map(map);
  std::fill_n(to, tensor.box_floats(), std::numeric_limits<float>::quiet_NaN());
  barrier_at(barrier).announce(tensor.box_floats() * 4, [=] { copy_tensor_box(tensor, to, x, line, batch); });
}

inline void load_shared_fixed(const float* shared, float& x, float& y, float& z, float& w) {
  x = shared[0], y = shared[1], z = shared[2], w = shared[3];
}
inline float scaled(float factor, float x) { return factor * x; }
inline void forget(int&) {}
inline float4 load_from_l2(const float4* p) { return *p; }
// Blocks run one after the other, so a fence between blocks has nothing to order.
inline void device_fence() {}

inline unsigned atomicAdd(unsigned* p, unsigned value) { return std::atomic_ref<unsigned>(*p).fetch_add(value); }
inline unsigned atomicMax(unsigned* p, unsigned value) {
  std::atomic_ref<unsigned> target(*p);
  unsigned before = target.load();
  while (before < value && !target.compare_exchange_weak(before, value)) {
  }
  return before;
}

inline int power_of_two_within(int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); }
inline int min(int a, int b) { return a < b ? a : b; }
inline long long min(long long a, long long b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline float fmaf(float a, float b, float c) { return std::fma(a, b, c); }
inline double fabs(double x) { return std::fabs(x); }
inline double sqrt(double x) { return std::sqrt(x); }
// NOLINTNEXTLINE(bugprone-reserved-identifier): the name that CUDA gives it
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }

// Loads of inputs that are read once.
template <size_t Floats>
void load_once(const float* p, float (&to)[Floats]) {
  std::copy_n(p, Floats, to);
}

}  // namespace gemm
