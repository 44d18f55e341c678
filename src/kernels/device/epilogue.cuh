// From accumulators to C: the end of the tile kernel.
//
//   slices == 1, split_k == 1   registers -> C
//   slices > 1                  registers -> shared memory [slice][BN][BM] -> sum in slice order -> C or workspace
//   split_k > 1                 -> workspace [batch][tile][split][BN][BM]; then the last block of the tile (ticket) or the
//                               kernel of reduce.cuh adds the splits in order and stores C
//   split_k > 1 in a cluster    -> each block's shared memory [BN][BM]; then each block adds its share of the quads over all
//                               blocks of the cluster, in split order, and stores it to C
//
//         split 0       split 1     .. the parts     shares of the quads: q0 .. | .. | ..
//      [ tile part ]  [ tile part ]                  of block:              0      1    2 ..
//
// Where it says C, the whole sum is there: beta * C is added, then comes the variant's epilogue, if it has one
// (bias_relu.cuh).
//
// Every sum has a fixed order, so results are bitwise repeatable. Values are multiplied by alpha when they leave the
// accumulators: 16-byte stores of the accumulators themselves would pin their register banks in the main loop.
#pragma once

#include "kernels/device/bias_relu.cuh"
#include "kernels/device/indirect.cuh"
#include "kernels/device/platform.cuh"

namespace gemm {

GEMM_DEVICE void add(float4& sum, const float4& v) { sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w; }

// One matrix of C and how it is written; what is done to it last is a part of the type.
template <Epilogue E>
struct Output {
  float* c;
  long long ldc;
  int m, n;
  float beta;
  bool wide;  // 16-byte accesses are allowed
  const float* bias;
};

template <Epilogue E>
GEMM_DEVICE void store_one(const Output<E>& out, int row, int column, float v) {
  if (row >= out.m || column >= out.n) return;
  float* c = out.c + column * out.ldc + row;
  *c = finished<E>(out.beta != 0.0f ? fmaf(out.beta, *c, v) : v, bias_at<E>(out.bias, row));
}

// One element of C or four consecutive rows of a column, 16-byte aligned.
template <int Width>
GEMM_DEVICE void load_old(const float* c, bool on, float* old) {
  if constexpr (Width == 4) {
    const float4 quad = on ? *reinterpret_cast<const float4*>(c) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    old[0] = quad.x, old[1] = quad.y, old[2] = quad.z, old[3] = quad.w;
  } else {
    *old = on ? *c : 0.0f;
  }
}
GEMM_DEVICE void store_at(float* c, const float (&v)[1]) { *c = v[0]; }
GEMM_DEVICE void store_at(float* c, const float (&v)[4]) {
  *reinterpret_cast<float4*>(c) = make_float4(v[0], v[1], v[2], v[3]);
}

// Whether C takes 16-byte stores, and every quad of a tile that ends before `row_end` is in it or not as a whole.
template <Epilogue E>
GEMM_DEVICE bool takes_quads(const Output<E>& out, int row_end) {
  return out.wide && (row_end <= out.m || out.m % 4 == 0);
}

// Matrix `batch` of a product's C.
template <KernelVariant V>
GEMM_DEVICE Output<V.epilogue> output_of(const TileArgs& args, long long batch) {
  float* c = matrix_c<V>(args, batch);
  return {c, args.ldc, args.m, args.n, beta_of<V>(args), is_wide<V>(args, c), bias_of<V.epilogue>(args.bias, batch)};
}

// Four consecutive rows of one column, as many as are in C.
template <Epilogue E>
GEMM_DEVICE void store_four(const Output<E>& out, int row, int column, float4 v) {
  if (row >= out.m || column >= out.n) return;
  if (out.wide && row + 3 < out.m) {
    float4* c = reinterpret_cast<float4*>(out.c + column * out.ldc + row);
    if (out.beta != 0.0f) {
      const float4 old = *c;
      v = make_float4(fmaf(out.beta, old.x, v.x), fmaf(out.beta, old.y, v.y), fmaf(out.beta, old.z, v.z),
                      fmaf(out.beta, old.w, v.w));
    }
    *c = finished<E>(v, out.bias, row);
    return;
  }
  store_one(out, row, column, v.x);
  store_one(out, row + 1, column, v.y);
  store_one(out, row + 2, column, v.z);
  store_one(out, row + 3, column, v.w);
}

// number / by for small numbers that are not negative, where `by` is often 1. A block can do nothing else meanwhile: with
// five signed divisions a thousand cycles passed between the main loop and the first store.
GEMM_DEVICE int quotient(int number, int by) {
  return by == 1 ? number : static_cast<int>(static_cast<unsigned>(number) / static_cast<unsigned>(by));
}

// Tile number -> tile coordinates, walking `group` tile rows together.
GEMM_DEVICE void tile_position(int tile, int tiles_m, int tiles_n, int group, int& tile_m, int& tile_n) {
  int first = 0;
  if (tiles_m > group) {
    const int groups = quotient(tile, group * tiles_n);
    tile -= groups * group * tiles_n;
    first = groups * group;
  }
  const int height = min(group, tiles_m - first);
  tile_n = quotient(tile, height);
  tile_m = first + tile - tile_n * height;
}

// What a block computes: a tile of C over a range of k.
struct TileItem {
  int row, column;     // of the tile in C
  int tile, batch;     // number of the tile in its matrix, and of the matrix
  int split;           // which part of the tile's k
  int k_begin, depth;  // that part
};

// Where one block's results go.
template <Epilogue E>
struct TileTarget {
  Output<E> out;
  int row, column;          // of the tile in C
  float4* partials;         // this tile's [split][BN][BM] in the workspace, when k is split
  long long first_partial;  // split 0 lies this many tiles further (stream-k; else 0)
  unsigned* ticket;         // this tile's counter, when tickets are used
  int split, split_k;
};

// Barrier of the threads that compute: all of the block, but not the copying warpgroup of LoadPath::warp_specialized.
template <LoadPath Load, int Threads>
struct ComputingThreads {
  GEMM_DEVICE static void wait() {
    if constexpr (is_specialized(Load))
      named_barrier<1>(Threads);
    else
      block_barrier();
  }
};

template <int BM, int BN, int Threads, Epilogue E, class Sync = ComputingThreads<LoadPath::async, Threads>>
struct TileEnd {
  using Target = TileTarget<E>;
  static constexpr int kQuads = BM * BN / 4;  // of four rows

  // Quad q of the finished sum over the slices: to C, or to this block's slot of the workspace.
  GEMM_DEVICE static void put(const Target& target, int q, const float4& v) {
    if (target.split_k == 1)
      store_quad(target, q, v);
    else
      partial_tile(target, target.split)[q] = v;
  }

  GEMM_DEVICE static float4* partial_tile(const Target& target, int split) {
    return target.partials + (split == 0 ? target.first_partial : split) * kQuads;
  }

  GEMM_DEVICE static void store_quad(const Target& target, int q, const float4& v) {
    store_four(target.out, target.row + q % (BM / 4) * 4, target.column + q / (BM / 4), v);
  }

  // The same where C takes its quads (takes_quads) and beta is 0.
  GEMM_DEVICE static void store_whole_quad(const Target& target, int q, const float4& v) {
    const int row = target.row + q % (BM / 4) * 4, column = target.column + q / (BM / 4);
    if (row < target.out.m && column < target.out.n)
      *reinterpret_cast<float4*>(target.out.c + column * target.out.ldc + row) = finished<E>(v, target.out.bias, row);
  }

  // Sum of quad q over splits [begin, end).
  GEMM_DEVICE static float4 sum_splits(const Target& target, int q, int begin, int end) {
    float4 sum = load_from_l2(partial_tile(target, begin) + q);
    const float4* p = target.partials + static_cast<long long>(begin) * kQuads + q;
    for (int s = begin + 1; s < end; ++s) {
      p += kQuads;
      add(sum, load_from_l2(p));
    }
    return sum;
  }

  static constexpr int kPartsAtOnce = 4;  // loads on their way: a peer's answer takes about 200 cycles

  // Adds the parts of a tile that lie at `part` in the shared memory of a cluster's blocks, one for each split. Every block
  // finishes an equal share of the quads.
  GEMM_DEVICE static void reduce_cluster(const Target& target, SharedPointer part) {
    const int begin = kQuads * target.split / target.split_k, end = kQuads * (target.split + 1) / target.split_k;
    for (int q = begin + static_cast<int>(threadIdx.x); q < end; q += Threads) {
      float4 sum = make_float4(-0.0f, -0.0f, -0.0f, -0.0f);
      GEMM_NO_UNROLL
      for (int first = 0; first < target.split_k; first += kPartsAtOnce) {
        float4 parts[kPartsAtOnce];
        GEMM_UNROLL
        for (int i = 0; i < kPartsAtOnce; ++i)
          parts[i] = load_peer_quad(part + q * 16, first + i, first + i < target.split_k);
        GEMM_UNROLL
        for (int i = 0; i < kPartsAtOnce; ++i) add(sum, parts[i]);
      }
      store_quad(target, q, sum);
    }
  }

  // True in the tile's last block, once all others have written their partial tiles. `flag` is in shared memory.
  GEMM_DEVICE static bool is_last_block(const Target& target, unsigned* flag) {
    device_fence();
    Sync::wait();
    if (threadIdx.x == 0) {
      *flag = atomicAdd(target.ticket, 1u) == static_cast<unsigned>(target.split_k) - 1 ? 1u : 0u;
      if (*flag) *target.ticket = 0;  // ready for the next launch
    }
    Sync::wait();
    device_fence();
    return *flag != 0;
  }

  // Adds the splits of a tile. Where a tile has fewer quads than the block has threads, groups of threads share the splits
  // and their sums are added in group order; `scratch` holds one quad per thread.
  GEMM_DEVICE static void reduce_splits(const Target& target, float4* scratch) {
    const int tid = static_cast<int>(threadIdx.x);
    if constexpr (kQuads * 2 > Threads) {
      for (int q = tid; q < kQuads; q += Threads) store_quad(target, q, sum_splits(target, q, 0, target.split_k));
    } else {
      const int groups = min(Threads / kQuads, target.split_k);
      const int group = tid / kQuads, q = tid % kQuads;
      if (group < groups)
        scratch[tid] = sum_splits(target, q, group * target.split_k / groups, (group + 1) * target.split_k / groups);
      Sync::wait();
      if (group == 0) {
        float4 sum = scratch[q];
        for (int g = 1; g < groups; ++g) add(sum, scratch[g * kQuads + q]);
        store_quad(target, q, sum);
      }
    }
  }
};

// The work of a block of a grid (tiles, split_k, batch), at these coordinates of its tile.
template <int BM, int BN>
GEMM_DEVICE TileItem block_item(const TileArgs& args, int tile_m, int tile_n) {
  TileItem item;
  item.row = tile_m * BM, item.column = tile_n * BN;
  item.tile = static_cast<int>(blockIdx.x);
  item.split = static_cast<int>(blockIdx.y);
  item.batch = static_cast<int>(blockIdx.z);
  // In 64 bits: the last splits of a long k may begin beyond 2^31 once rounded up.
  const long long k_begin = static_cast<long long>(item.split) * args.k_per_split;
  item.k_begin = static_cast<int>(k_begin);
  item.depth = static_cast<int>(min(static_cast<long long>(args.k_per_split), args.k - k_begin));
  return item;
}

// Where its results go.
template <KernelVariant V>
GEMM_DEVICE TileTarget<V.epilogue> block_target(const TileArgs& args, const TileItem& item) {
  const long long tile = static_cast<long long>(item.batch) * args.tiles_m * args.tiles_n + item.tile;
  TileTarget<V.epilogue> target;
  target.out = output_of<V>(args, item.batch);
  target.row = item.row;
  target.column = item.column;
  target.split = item.split;
  target.split_k = args.split_k;
  target.partials = reinterpret_cast<float4*>(args.workspace) + tile * args.split_k * (V.config.BM * V.config.BN / 4);
  target.first_partial = 0;
  target.ticket = args.tickets + tile;
  return target;
}

}  // namespace gemm
