// C = beta * C, for alpha = 0 or k = 0. With beta = 0, C is not read. Each thread walks over elements a grid apart.
#pragma once

#include "kernels/device/indirect.cuh"
#include "kernels/device/platform.cuh"

namespace gemm {

GEMM_DEVICE void scale(const ScaleArgs& args) {
  const long long per_matrix = static_cast<long long>(args.m) * args.n;
  const long long total = per_matrix * args.batch;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += step) {
    const long long element = i % per_matrix;
    float* c = args.c + i / per_matrix * args.stride_c + element / args.m * args.ldc + element % args.m;
    *c = args.beta != 0.0f ? args.beta * *c : 0.0f;
  }
}

// The same, then an epilogue. Beta, or the matrices, may be found by pointers on the GPU.
template <Epilogue E>
GEMM_DEVICE void scale_with(const ScaleArgs& args) {
  const auto matrix = [&](long long i) { return args.c_array ? args.c_array[i] : args.c + i * args.stride_c; };
  scale_matrices<E>(matrix, args.ldc, args.m, args.n, args.batch, args.beta_pointer ? *args.beta_pointer : args.beta,
                    args.bias);
}

GEMM_DEVICE void scale_indirect(const ScaleArgs& args) { scale_with<Epilogue::none>(args); }

}  // namespace gemm
