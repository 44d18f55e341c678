// What the tuner checks kernels with: random operands, an FP64 reference, the comparison, and guard words.
#pragma once

#include "kernels/device/platform.cuh"

namespace gemm {

// A well-mixed 32-bit hash of the element's number (the finaliser of a multiplicative hash), mapped to [-1, 1).
GEMM_DEVICE float random_value(unsigned seed, unsigned long long index) {
  unsigned long long x = index * 0x9e3779b97f4a7c15ull + (static_cast<unsigned long long>(seed) << 32 | 0x5bd1e995u);
  x ^= x >> 31;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 32;
  return static_cast<float>(static_cast<int>(static_cast<unsigned>(x) >> 8) - (1 << 23)) / static_cast<float>(1 << 23);
}

GEMM_DEVICE void fill_random(const FillArgs& args) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < args.count; i += step)
    args.data[i] = random_value(args.seed, static_cast<unsigned long long>(i));
}

// Sums in FP64, 16 x 16 results per block of 256 threads; slabs of 16 steps of k in shared memory:
//
//   | a[16 k][17] | b[16 k][17] |   the pad of 1 keeps both the transposing stores and the loads free of bank conflicts
GEMM_DEVICE void reference(const ReferenceArgs& args) {
  constexpr int kTile = 16, kLd = kTile + 1;
  float* slab_a = dynamic_shared();
  float* slab_b = slab_a + kTile * kLd;
  const int tiles_m = (args.m + kTile - 1) / kTile;
  const int x = static_cast<int>(threadIdx.x) % kTile, y = static_cast<int>(threadIdx.x) / kTile;
  const int row0 = static_cast<int>(blockIdx.x) % tiles_m * kTile, column0 = static_cast<int>(blockIdx.x) / tiles_m * kTile;
  const float* a = args.a + blockIdx.z * args.stride_a;
  const float* b = args.b + blockIdx.z * args.stride_b;
  double sum = 0, magnitude = 0;
  for (int k0 = 0; k0 < args.k; k0 += kTile) {
    // The fast index of each matrix runs along x, so that loads coalesce.
    const int row_a = row0 + (args.op_a_t ? y : x), k_a = k0 + (args.op_a_t ? x : y);
    const int column_b = column0 + (args.op_b_t ? x : y), k_b = k0 + (args.op_b_t ? y : x);
    const bool in_a = row_a < args.m && k_a < args.k, in_b = column_b < args.n && k_b < args.k;
    slab_a[(k_a - k0) * kLd + row_a - row0] = in_a ? a[args.op_a_t ? row_a * args.lda + k_a : k_a * args.lda + row_a] : 0.0f;
    slab_b[(k_b - k0) * kLd + column_b - column0] =
        in_b ? b[args.op_b_t ? k_b * args.ldb + column_b : column_b * args.ldb + k_b] : 0.0f;
    block_barrier();
    for (int k = 0; k < kTile; ++k) {
      const double product = static_cast<double>(slab_a[k * kLd + x]) * static_cast<double>(slab_b[k * kLd + y]);
      sum += product;
      magnitude += fabs(product);
    }
    block_barrier();
  }
  const int row = row0 + x, column = column0 + y;
  if (row >= args.m || column >= args.n) return;
  const long long i = (static_cast<long long>(blockIdx.z) * args.n + column) * args.m + row;
  args.sum[i] = sum;
  args.magnitude[i] = magnitude;
}

// worst = max |c - expected| / bound with
//
//   expected = alpha * sum + beta * c_before
//   bound    = eps * ((4 + 2 * sqrt(k)) * |alpha| * magnitude + 4 * |beta * c_before|) + tiny
//
// Rounding errors of k additions grow like sqrt(k) * eps for random signs; the factor 2 is about ten standard deviations.
// One dropped term of a random problem is off by about magnitude / k, far above the bound until k reaches some 10^4.
GEMM_DEVICE void compare(const CompareArgs& args) {
  constexpr double kEps = 5.9604644775390625e-8;  // 2^-24, half a unit in the last place of 1
  constexpr double kTiny = 1e-36;
  const long long per_matrix = static_cast<long long>(args.m) * args.n;
  const long long total = per_matrix * args.batch;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  const double factor = 4 + 2 * sqrt(static_cast<double>(args.k));
  float worst = 0;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += step) {
    const long long element = i % per_matrix;
    const long long at = i / per_matrix * args.stride_c + element / args.m * args.ldc + element % args.m;
    const double old = args.beta != 0.0f ? static_cast<double>(args.beta) * static_cast<double>(args.c_before[at]) : 0.0;
    const double alpha = static_cast<double>(args.alpha);
    const double error = fabs(static_cast<double>(args.c[at]) - (alpha * args.sum[i] + old));
    const double scaled = error / (kEps * (factor * fabs(alpha) * args.magnitude[i] + 4 * fabs(old)) + kTiny);
    // Written so that NaN fails.
    const float bounded = scaled < 3e38 ? static_cast<float>(scaled) : 3e38f;
    worst = bounded > worst ? bounded : worst;
  }
  atomicMax(args.worst, __float_as_uint(worst));
}

// True for a word of the allocation that belongs to C, `at` counted from C's first element.
GEMM_DEVICE bool inside_output(const GuardArgs& args, long long at) {
  if (at < 0 || args.m == 0 || args.n == 0) return false;
  const long long extent = (args.n - 1) * args.ldc + args.m;
  long long matrix = args.stride_c > 0 ? at / args.stride_c : 0;
  if (matrix >= args.batch) matrix = args.batch - 1;
  const long long element = at - matrix * args.stride_c;
  return element < extent && element % args.ldc < args.m;
}

GEMM_DEVICE void count_guard_violations(const GuardArgs& args) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  unsigned violations = 0;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < args.total; i += step)
    if (args.allocation[i] != args.sentinel && !inside_output(args, i - args.front)) ++violations;
  if (violations != 0) atomicAdd(args.violations, violations);
}

}  // namespace gemm
