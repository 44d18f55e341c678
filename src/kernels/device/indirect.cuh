// What a launch finds by pointers on the GPU instead of in its arguments: alpha and beta, and the matrices of a batch that
// lie anywhere. Only variants with `indirect` look; all others compile as if this file were not there.
//
// alpha is not known on the host then, so the kernel itself sees to it that A and B are not read where it is 0. Neither are
// the addresses of the matrices, so a variant with wide loads holds one with single floats too, for matrices that are not
// aligned (is_aligned).
#pragma once

#include "kernels/device/bias_relu.cuh"
#include "kernels/device/platform.cuh"

namespace gemm {

template <KernelVariant V>
GEMM_DEVICE float alpha_of(const TileArgs& args) {
  if constexpr (V.indirect)
    if (args.alpha_pointer) return *args.alpha_pointer;
  return args.alpha;
}

template <KernelVariant V>
GEMM_DEVICE float beta_of(const TileArgs& args) {
  if constexpr (V.indirect)
    if (args.beta_pointer) return *args.beta_pointer;
  return args.beta;
}

template <KernelVariant V>
GEMM_DEVICE const float* matrix_a(const TileArgs& args, long long batch) {
  if constexpr (V.indirect)
    if (args.a_array) return args.a_array[batch];
  return args.a + batch * args.stride_a;
}

template <KernelVariant V>
GEMM_DEVICE const float* matrix_b(const TileArgs& args, long long batch) {
  if constexpr (V.indirect)
    if (args.b_array) return args.b_array[batch];
  return args.b + batch * args.stride_b;
}

template <KernelVariant V>
GEMM_DEVICE float* matrix_c(const TileArgs& args, long long batch) {
  if constexpr (V.indirect)
    if (args.c_array) return args.c_array[batch];
  return args.c + batch * args.stride_c;
}

GEMM_DEVICE bool is_multiple(const float* pointer, int floats) {
  return reinterpret_cast<unsigned long long>(pointer) % (4 * static_cast<unsigned>(floats)) == 0;
}

// Whether C allows 16-byte accesses; of a pointer array the host has looked at ldc only.
template <KernelVariant V>
GEMM_DEVICE bool is_wide(const TileArgs& args, const float* c) {
  if constexpr (V.indirect) return args.wide_c != 0 && is_multiple(c, 4);
  return args.wide_c != 0;
}

// C = beta * C, and the epilogue, for the elements of `batch` matrices, shared by all threads of the grid. `matrix(i)` is
// matrix i of C. With beta = 0, C is not read.
template <Epilogue E, class Matrix>
GEMM_DEVICE void scale_matrices(const Matrix& matrix, long long ldc, int m, int n, int batch, float beta, const Bias& bias) {
  const long long per_matrix = static_cast<long long>(m) * n, total = per_matrix * batch;
  const long long threads = static_cast<long long>(gridDim.x) * gridDim.y * gridDim.z * blockDim.x;
  const long long block = (static_cast<long long>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  for (long long i = block * blockDim.x + threadIdx.x; i < total; i += threads) {
    const long long element = i % per_matrix;
    float* c = matrix(i / per_matrix) + element / m * ldc + element % m;
    float x = beta != 0.0f ? beta * *c : 0.0f;
    // Without an epilogue not even an unused remainder may be here: it changes the registers of indirect kernels.
    if constexpr (E != Epilogue::none)
      x = finished<E>(x, bias_at<E>(bias_of<E>(bias, i / per_matrix), static_cast<int>(element % m)));
    *c = x;
  }
}

// True where alpha, read on the GPU, is 0: C is scaled, and the kernel has nothing left to do.
template <KernelVariant V>
GEMM_DEVICE bool only_scales(const TileArgs& args) {
  if constexpr (V.indirect) {
    if (alpha_of<V>(args) != 0.0f) return false;
    scale_matrices<V.epilogue>([&](long long i) { return matrix_c<V>(args, i); }, args.ldc, args.m, args.n, args.batch,
                               beta_of<V>(args), args.bias);
    return true;
  }
  return false;
}

// The variant for matrices of any address, and whether matrix `batch` needs it.
constexpr KernelVariant with_single_floats(KernelVariant v) {
  v.vec_a = v.vec_b = 1;
  return v;
}
constexpr bool may_be_unaligned(const KernelVariant& v) { return v.indirect && (v.vec_a > 1 || v.vec_b > 1); }

template <KernelVariant V>
GEMM_DEVICE bool is_aligned(const TileArgs& args, long long batch) {
  return is_multiple(matrix_a<V>(args, batch), V.vec_a) && is_multiple(matrix_b<V>(args, batch), V.vec_b);
}

}  // namespace gemm
