// From accumulators to C: the end of the tile kernel.
//
//   slices == 1, split_k == 1   registers -> C
//   slices > 1                  registers -> shared memory [slice][BN][BM] -> sum in slice order -> C or workspace
//   split_k > 1                 -> workspace [batch][tile][split][BN][BM]; then the last block of the tile (ticket) or the
//   kernel of
//                               reduce.cuh adds the splits in order and stores C
//
// Every sum has a fixed order, so results are bitwise repeatable. Values are multiplied by alpha when they leave the
// accumulators: 16-byte stores of the accumulators themselves would pin their register banks in the main loop.
#pragma once

#include "kernels/device/platform.cuh"

namespace gemm {

GEMM_DEVICE void add(float4& sum, const float4& v) { sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w; }

// One matrix of C and how it is written.
struct Output {
  float* c;
  long long ldc;
  int m, n;
  float beta;
  bool wide;  // 16-byte accesses are allowed
};

GEMM_DEVICE void store_one(const Output& out, int row, int column, float v) {
  if (row >= out.m || column >= out.n) return;
  float* c = out.c + column * out.ldc + row;
  *c = out.beta != 0.0f ? fmaf(out.beta, *c, v) : v;
}

// Four consecutive rows of one column.
GEMM_DEVICE void store_four(const Output& out, int row, int column, float4 v) {
  if (row >= out.m || column >= out.n) return;
  if (out.wide && row + 3 < out.m) {
    float4* c = reinterpret_cast<float4*>(out.c + column * out.ldc + row);
    if (out.beta != 0.0f) {
      const float4 old = *c;
      v = make_float4(fmaf(out.beta, old.x, v.x), fmaf(out.beta, old.y, v.y), fmaf(out.beta, old.z, v.z),
                      fmaf(out.beta, old.w, v.w));
    }
    *c = v;
    return;
  }
  store_one(out, row, column, v.x);
  store_one(out, row + 1, column, v.y);
  store_one(out, row + 2, column, v.z);
  store_one(out, row + 3, column, v.w);
}

// Tile number -> tile coordinates, walking `group` tile rows together.
GEMM_DEVICE void tile_position(int tile, int tiles_m, int tiles_n, int group, int& tile_m, int& tile_n) {
  const int per_group = group * tiles_n;
  const int first = tile / per_group * group;
  const int height = min(group, tiles_m - first);
  const int rest = tile % per_group;
  tile_m = first + rest % height;
  tile_n = rest / height;
}

// Where one block's results go.
struct TileTarget {
  Output out;
  int row, column;   // of the tile in C
  float4* partials;  // this tile's [split][BN][BM] in the workspace, when k is split
  unsigned* ticket;  // this tile's counter, when tickets are used
  int split, split_k;
};

template <int BM, int BN, int Threads>
struct TileEnd {
  static constexpr int kQuads = BM * BN / 4;  // of four rows

  // Quad q of the finished sum over the slices: to C, or to this block's slot of the workspace.
  GEMM_DEVICE static void put(const TileTarget& target, int q, const float4& v) {
    if (target.split_k == 1)
      store_quad(target, q, v);
    else
      target.partials[static_cast<long long>(target.split) * kQuads + q] = v;
  }

  GEMM_DEVICE static void store_quad(const TileTarget& target, int q, const float4& v) {
    store_four(target.out, target.row + q % (BM / 4) * 4, target.column + q / (BM / 4), v);
  }

  // Sum of quad q over splits [begin, end).
  GEMM_DEVICE static float4 sum_splits(const TileTarget& target, int q, int begin, int end) {
    const float4* p = target.partials + static_cast<long long>(begin) * kQuads + q;
    float4 sum = load_from_l2(p);
    for (int s = begin + 1; s < end; ++s) {
      p += kQuads;
      add(sum, load_from_l2(p));
    }
    return sum;
  }

  // True in the tile's last block, once all others have written their partial tiles. `flag` is in shared memory.
  GEMM_DEVICE static bool is_last_block(const TileTarget& target, unsigned* flag) {
    device_fence();
    block_barrier();
    if (threadIdx.x == 0) {
      *flag = atomicAdd(target.ticket, 1u) == static_cast<unsigned>(target.split_k) - 1 ? 1u : 0u;
      if (*flag) *target.ticket = 0;  // ready for the next launch
    }
    block_barrier();
    device_fence();
    return *flag != 0;
  }

  // Adds the splits of a tile. Where a tile has fewer quads than the block has threads, groups of threads share the splits
  // and their sums are added in group order; `scratch` holds one quad per thread.
  GEMM_DEVICE static void reduce_splits(const TileTarget& target, float4* scratch) {
    const int tid = static_cast<int>(threadIdx.x);
    if constexpr (kQuads * 2 > Threads) {
      for (int q = tid; q < kQuads; q += Threads) store_quad(target, q, sum_splits(target, q, 0, target.split_k));
    } else {
      const int groups = min(Threads / kQuads, target.split_k);
      const int group = tid / kQuads, q = tid % kQuads;
      if (group < groups)
        scratch[tid] = sum_splits(target, q, group * target.split_k / groups, (group + 1) * target.split_k / groups);
      block_barrier();
      if (group == 0) {
        float4 sum = scratch[q];
        for (int g = 1; g < groups; ++g) add(sum, scratch[g * kQuads + q]);
        store_quad(target, q, sum);
      }
    }
  }
};

}  // namespace gemm
