// The second launch of a split product: C = sum over splits + beta * C, in split order. One thread per four rows of a tile.
//
//   workspace: [batch][tile][split][BN][BM], already times alpha; grid (tiles, quads / 256, batch)
#pragma once

#include "kernels/device/epilogue.cuh"
#include "kernels/device/platform.cuh"

namespace gemm {

// `output(i)` is matrix i of C.
template <class OutputOf>
GEMM_DEVICE void reduce_splits_to(const ReduceArgs& args, const OutputOf& output) {
  const int quads = args.BM * args.BN / 4;
  const int q = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  if (q >= quads) return;
  int tile_m, tile_n;
  tile_position(static_cast<int>(blockIdx.x), args.tiles_m, args.tiles_n, args.raster_group, tile_m, tile_n);
  const long long batch = blockIdx.z;
  const long long tile = batch * args.tiles_m * args.tiles_n + blockIdx.x;
  const float4* partial = reinterpret_cast<const float4*>(args.workspace) + tile * args.split_k * quads + q;
  float4 sum = load_from_l2(partial);
  for (int s = 1; s < args.split_k; ++s) {
    partial += quads;
    add(sum, load_from_l2(partial));
  }
  const Output out = output(batch);
  store_four(out, tile_m * args.BM + q % (args.BM / 4) * 4, tile_n * args.BN + q / (args.BM / 4), sum);
}

GEMM_DEVICE void reduce_splits(const ReduceArgs& args) {
  reduce_splits_to(args, [&](long long batch) {
    return Output<Epilogue::none>{
        args.c + batch * args.stride_c, args.ldc, args.m, args.n, args.beta, args.wide_c != 0, nullptr};
  });
}

// After a tile kernel with an epilogue, which is done here, or with `indirect`, which has done all where alpha is 0.
template <Epilogue E>
GEMM_DEVICE void reduce_splits_with(const ReduceArgs& args) {
  if (args.alpha_pointer && *args.alpha_pointer == 0.0f) return;
  reduce_splits_to(args, [&](long long batch) {
    float* c = args.c_array ? args.c_array[batch] : args.c + batch * args.stride_c;
    const float beta = args.beta_pointer ? *args.beta_pointer : args.beta;
    const bool wide = args.wide_c != 0 && is_multiple(c, 4);
    return Output<E>{c, args.ldc, args.m, args.n, beta, wide, bias_of<E>(args.bias, batch)};
  });
}

GEMM_DEVICE void reduce_splits_indirect(const ReduceArgs& args) { reduce_splits_with<Epilogue::none>(args); }

}  // namespace gemm
