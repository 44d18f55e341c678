// The ladder: six short kernels, each one idea better than the one before, for learning and for `gemm-bench --ladder`. The
// next rung is the warp-tiled kernel of tile.cuh. C = alpha * A * B + beta * C for one matrix, any m, n, k; no transposes.
//
// The worklog that these steps come from (docs/design.md) stores matrices by rows. Ours lie by columns, and a product by
// rows is the product of the transposes by columns: C^T = B^T * A^T. So everything is mirrored here: neighbouring threads
// should walk down a column of C and of A (theirs: along a row of C and of B), a thread's eight results of rung 4 lie along
// a row of C, and the operand that rung 6 transposes on its way is B.
//
//            n                       A: element (row, k) at a[row + k * lda], so rows are next to each other
//        +-------+                   B: element (k, column) at b[k + column * ldb], so k is
//   k    |   B   |                   C: element (row, column) at c[row + column * ldc]
//     k  +-------+
//   +---++-------+
// m | A ||   C   |                   A block computes one tile of C; blocks walk down the columns of tiles.
//   +---++-------+
#pragma once

#include "kernels/device/epilogue.cuh"
#include "kernels/device/platform.cuh"

namespace gemm {

struct TileOrigin {
  int row, column;
};

GEMM_DEVICE TileOrigin ladder_origin(const LadderArgs& args, int tile_rows, int tile_columns) {
  const int tiles_m = (args.m + tile_rows - 1) / tile_rows;
  const int tile = static_cast<int>(blockIdx.x);
  return {tile % tiles_m * tile_rows, tile / tiles_m * tile_columns};
}

// Elements beyond the edges are zeros that are selected, not multiplied, so that NaN cannot leak in.
GEMM_DEVICE float element_a(const LadderArgs& args, int row, int k) {
  return row < args.m && k < args.k ? args.a[row + k * args.lda] : 0.0f;
}
GEMM_DEVICE float element_b(const LadderArgs& args, int k, int column) {
  return k < args.k && column < args.n ? args.b[k + column * args.ldb] : 0.0f;
}

GEMM_DEVICE Output<Epilogue::none> ladder_output(const LadderArgs& args) {
  return {args.c, args.ldc, args.m, args.n, args.beta, args.wide != 0, nullptr};
}

// One result of C, straight from global memory: what rungs 1 and 2 do with each thread.
GEMM_DEVICE void ladder_one_result(const LadderArgs& args, int row, int column) {
  if (row >= args.m || column >= args.n) return;
  float sum = 0;
  for (int k = 0; k < args.k; ++k) sum = fmaf(args.a[row + k * args.lda], args.b[k + column * args.ldb], sum);
  store_one(ladder_output(args), row, column, args.alpha * sum);
}

// Rung 1, naive: one thread per result, 32 x 32 of them. The 32 threads of a warp take one row of the tile:
//
//   C: row r | t0 | t1 | t2 | ...      each needs another column of B and writes another column of C: 32 lines of memory
//                                      for 32 floats, every time
GEMM_DEVICE void ladder_naive(const LadderArgs& args) {
  const TileOrigin tile = ladder_origin(args, 32, 32);
  const int thread = static_cast<int>(threadIdx.x);
  ladder_one_result(args, tile.row + thread / 32, tile.column + thread % 32);
}

// Rung 2, coalesced: the same, but the threads of a warp take one column of the tile:
//
//   C: column c | t0 |                 A and C are next to each other in memory: one line for 32 floats; B is the same for
//               | t1 |                 all threads: one load for the warp
//               | .. |
GEMM_DEVICE void ladder_coalesced(const LadderArgs& args) {
  const TileOrigin tile = ladder_origin(args, 32, 32);
  const int thread = static_cast<int>(threadIdx.x);
  ladder_one_result(args, tile.row + thread % 32, tile.column + thread / 32);
}

// Rung 3, shared memory: the block first brings a 32 x 32 slab of A and of B into shared memory, where each element is then
// read 32 times; a barrier before, so that the slab is complete, and one after, so that nobody overwrites it too early.
//
//   shared: | A [32 k][32 rows] | B [32 columns][32 k] |
GEMM_DEVICE void ladder_shared(const LadderArgs& args) {
  constexpr int kTile = 32;
  float* slab_a = dynamic_shared();
  float* slab_b = slab_a + kTile * kTile;
  const TileOrigin tile = ladder_origin(args, kTile, kTile);
  const int x = static_cast<int>(threadIdx.x) % kTile, y = static_cast<int>(threadIdx.x) / kTile;
  float sum = 0;
  for (int k0 = 0; k0 < args.k; k0 += kTile) {
    slab_a[y * kTile + x] = element_a(args, tile.row + x, k0 + y);
    slab_b[y * kTile + x] = element_b(args, k0 + x, tile.column + y);
    block_barrier();
    GEMM_UNROLL
    for (int k = 0; k < kTile; ++k) sum = fmaf(slab_a[k * kTile + x], slab_b[y * kTile + k], sum);
    block_barrier();
  }
  store_one(ladder_output(args), tile.row + x, tile.column + y, args.alpha * sum);
}

// Rung 4, 1D tile: each thread computes eight results of one row, so that an element of A is read from shared memory once
// for eight multiply-adds. 64 x 64 tile, slabs 8 deep, 512 threads.
//
//   C: row r | t  t  t  t  t  t  t  t |        shared: | A [8 k][64 rows] | B [64 columns][8 k] |
GEMM_DEVICE void ladder_tile_1d(const LadderArgs& args) {
  constexpr int BM = 64, BN = 64, BK = 8, TN = 8;
  float* slab_a = dynamic_shared();
  float* slab_b = slab_a + BK * BM;
  const TileOrigin tile = ladder_origin(args, BM, BN);
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread % BM, column = thread / BM * TN;
  float sum[TN] = {};
  for (int k0 = 0; k0 < args.k; k0 += BK) {
    slab_a[thread] = element_a(args, tile.row + thread % BM, k0 + thread / BM);
    slab_b[thread] = element_b(args, k0 + thread % BK, tile.column + thread / BK);
    block_barrier();
    GEMM_UNROLL
    for (int k = 0; k < BK; ++k) {
      const float a = slab_a[k * BM + row];
      GEMM_UNROLL
      for (int j = 0; j < TN; ++j) sum[j] = fmaf(a, slab_b[(column + j) * BK + k], sum[j]);
    }
    block_barrier();
  }
  GEMM_UNROLL
  for (int j = 0; j < TN; ++j) store_one(ladder_output(args), tile.row + row, tile.column + column + j, args.alpha * sum[j]);
}

// What rungs 5 and 6 share: a 128 x 128 tile, slabs 8 deep, 256 threads with 8 x 8 results each.
struct LadderTile2d {
  static constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, kThreads = 256;

  int row, column;  // of this thread's first result in the tile
  float sum[TM][TN] = {};

  GEMM_DEVICE LadderTile2d()
      : row(static_cast<int>(threadIdx.x) % (BM / TM) * TM), column(static_cast<int>(threadIdx.x) / (BM / TM) * TN) {}

  // 64 multiply-adds from 16 registers: the outer product of eight elements of A and of B.
  GEMM_DEVICE void add_outer_product(const float (&a)[TM], const float (&b)[TN]) {
    GEMM_UNROLL
    for (int i = 0; i < TM; ++i) {
      GEMM_UNROLL
      for (int j = 0; j < TN; ++j) sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
    }
  }
};

// Rung 5, 2D tile: each thread computes 8 x 8 results, so that both operands are reused from registers.
//
//   C: | t t t t t t t t |                     shared: | A [8 k][128 rows] | B [128 columns][8 k] |
//      | t t t t t t t t |  8 rows
GEMM_DEVICE void ladder_tile_2d(const LadderArgs& args) {
  using T = LadderTile2d;
  float* slab_a = dynamic_shared();
  float* slab_b = slab_a + T::BK * T::BM;
  const TileOrigin tile = ladder_origin(args, T::BM, T::BN);
  T t;
  for (int k0 = 0; k0 < args.k; k0 += T::BK) {
    GEMM_UNROLL
    for (int i = 0; i < T::BM * T::BK; i += T::kThreads) {
      const int at = i + static_cast<int>(threadIdx.x);
      slab_a[at] = element_a(args, tile.row + at % T::BM, k0 + at / T::BM);
      slab_b[at] = element_b(args, k0 + at % T::BK, tile.column + at / T::BK);
    }
    block_barrier();
    GEMM_UNROLL
    for (int k = 0; k < T::BK; ++k) {
      float a[T::TM], b[T::TN];
      GEMM_UNROLL
      for (int i = 0; i < T::TM; ++i) a[i] = slab_a[k * T::BM + t.row + i];
      GEMM_UNROLL
      for (int j = 0; j < T::TN; ++j) b[j] = slab_b[(t.column + j) * T::BK + k];
      t.add_outer_product(a, b);
    }
    block_barrier();
  }
  GEMM_UNROLL
  for (int j = 0; j < T::TN; ++j) {
    GEMM_UNROLL
    for (int i = 0; i < T::TM; ++i)
      store_one(ladder_output(args), tile.row + t.row + i, tile.column + t.column + j, args.alpha * t.sum[i][j]);
  }
}

// Four elements below each other, zeros outside; one 16-byte load where pointer, ld and position allow it.
GEMM_DEVICE float4 load_four(const float* matrix, long long ld, int rows, int columns, int row, int column, bool wide) {
  float4 v = make_float4(0, 0, 0, 0);
  if (column >= columns) return v;
  const float* p = matrix + row + column * ld;
  if (wide && row + 3 < rows) return *reinterpret_cast<const float4*>(p);
  if (row < rows) v.x = p[0];
  if (row + 1 < rows) v.y = p[1];
  if (row + 2 < rows) v.z = p[2];
  if (row + 3 < rows) v.w = p[3];
  return v;
}

// Eight neighbouring floats of shared memory by two 16-byte loads.
GEMM_DEVICE void load_eight(float (&value)[8], const float* shared) {
  GEMM_UNROLL
  for (int i = 0; i < 8; i += 4) {
    const float4 v = *reinterpret_cast<const float4*>(shared + i);
    value[i] = v.x, value[i + 1] = v.y, value[i + 2] = v.z, value[i + 3] = v.w;
  }
}

// Rung 6, vectorised: 16 bytes per access to global and shared memory. B is transposed while it is stored to shared memory,
// so that the eight elements of it that a thread needs lie next to each other as well.
//
//   shared: | A [8 k][128 rows] | B [8 k][128 columns] |
GEMM_DEVICE void ladder_vectorised(const LadderArgs& args) {
  using T = LadderTile2d;
  float* slab_a = dynamic_shared();
  float* slab_b = slab_a + T::BK * T::BM;
  const TileOrigin tile = ladder_origin(args, T::BM, T::BN);
  const int thread = static_cast<int>(threadIdx.x);
  const int row_a = thread % (T::BM / 4) * 4, k_a = thread / (T::BM / 4);
  const int k_b = thread % (T::BK / 4) * 4, column_b = thread / (T::BK / 4);
  T t;
  for (int k0 = 0; k0 < args.k; k0 += T::BK) {
    *reinterpret_cast<float4*>(slab_a + k_a * T::BM + row_a) =
        load_four(args.a, args.lda, args.m, args.k, tile.row + row_a, k0 + k_a, args.wide != 0);
    const float4 b = load_four(args.b, args.ldb, args.k, args.n, k0 + k_b, tile.column + column_b, args.wide != 0);
    slab_b[(k_b + 0) * T::BN + column_b] = b.x;
    slab_b[(k_b + 1) * T::BN + column_b] = b.y;
    slab_b[(k_b + 2) * T::BN + column_b] = b.z;
    slab_b[(k_b + 3) * T::BN + column_b] = b.w;
    block_barrier();
    GEMM_UNROLL
    for (int k = 0; k < T::BK; ++k) {
      float a[T::TM], column_values[T::TN];
      load_eight(a, slab_a + k * T::BM + t.row);
      load_eight(column_values, slab_b + k * T::BN + t.column);
      t.add_outer_product(a, column_values);
    }
    block_barrier();
  }
  GEMM_UNROLL
  for (int j = 0; j < T::TN; ++j) {
    GEMM_UNROLL
    for (int i = 0; i < T::TM; i += 4)
      store_four(ladder_output(args), tile.row + t.row + i, tile.column + t.column + j,
                 make_float4(args.alpha * t.sum[i][j], args.alpha * t.sum[i + 1][j], args.alpha * t.sum[i + 2][j],
                             args.alpha * t.sum[i + 3][j]));
  }
}

}  // namespace gemm
