// platform.cuh for the host: kernels run as plain C++, one fibre or thread per CUDA thread. Everything is in namespace gemm,
// so nothing here can clash with CUDA's own headers.
#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

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
  void (*barrier)() = nullptr;                  // __syncthreads of the executor
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
inline void block_barrier() { emulated_thread().barrier(); }

// Asynchronous copies are as late as the hardware may make them, and as early as they may do harm: the destination is NaN
// from the moment of the call, the data arrives in wait_copies.
template <int Floats, class Offset>
void copy_async_or_zero(float* shared, const char* base, Offset offset, bool valid, bool on) {
  if (!on) return;
  for (int i = 0; i < Floats; ++i) shared[i] = std::numeric_limits<float>::quiet_NaN();
  emulated_thread().open_group.push_back({shared, base + offset, Floats, valid});
}
template <int Floats, class Offset>
void copy_async(float* shared, const char* base, Offset offset, bool on) {
  copy_async_or_zero<Floats>(shared, base, offset, true, on);
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

inline void load_shared_fixed(const float* shared, float& x, float& y, float& z, float& w) {
  x = shared[0], y = shared[1], z = shared[2], w = shared[3];
}
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

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline float fmaf(float a, float b, float c) { return std::fma(a, b, c); }
inline double fabs(double x) { return std::fabs(x); }
inline double sqrt(double x) { return std::sqrt(x); }
// NOLINTNEXTLINE(bugprone-reserved-identifier): the name that CUDA gives it
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }

}  // namespace gemm
