// The streaming kernel, for products with one to a few columns (or rows): C = alpha * op(A) * op(B) + beta * C, strict FP32.
//
// The long operand (op(A) when columns are few, op(B) transposed when rows are) is read once, straight from global memory to
// registers; the short one waits in shared memory. In words of the long operand: its "rows" are rows of op(A) or columns of
// op(B), and "columns" are those of the short operand.
//
//          k ->      one step                          shared memory, k fast
//        +-------------------------+-- - -      column 0 | k0 k1 ... k(BK-1) | pad |
//  block | lanes side by side      | slice 1    column 1 | k0 k1 ... k(BK-1) | pad |   two chunks: one is used, the next
//  rows  | along k, 4 k and        | the        ...                                    one arrives
//        | TM or TN rows each      | same rows
//        +-------------------------+-- - -      when k is done: the lanes' sums, a tile of C for every slice, and
//        | next warp of slice 0    |            the sums of the splits take the same place (stream_config.h)
//        +-------------------------+-- - -
//
// A lane's share of a step is 4 k of `kRows` rows, kRows loads of 16 bytes whichever way the long operand lies: along k, or
// along the rows in quads of 4. `stages` steps are always on their way, each in registers of its own; a round uses every one
// of them once and starts its successor. Nothing but a new chunk makes threads wait for each other, and the loads go on
// meanwhile.
//
// Steps, rounds and chunks are counted from the end of k and done in this order. So the step that the end of k may cut comes
// first, before the loop, and only it pays for masks. Masks select zeros and never multiply, so NaN beyond the end cannot
// leak in. Rows beyond the matrix are read from its last row again: they feed only results that are never stored.
#pragma once

#include "kernels/device/epilogue.cuh"
#include "kernels/device/platform.cuh"

namespace gemm {

// What both operands agree on.
template <KernelVariant V>
struct StreamLayout {
  static constexpr KernelConfig kConfig = V.config;
  static constexpr StreamShape kShape = stream_shape(kConfig);
  static constexpr int kThreads = kConfig.threads();
  static constexpr int kWarpsRows = kShape.block_rows / kShape.warp_rows;
  static constexpr int kLanesRows = kShape.lanes_rows(), kLanesK = kShape.lanes_k();
  static constexpr int kStep = kShape.step(), kRows = kShape.lane_rows, kColumns = kShape.columns;
  static constexpr bool kLongA = kShape.long_a;
  static constexpr bool kLongAlongK = kLongA ? V.a_along_k() : V.b_along_k();
  static constexpr bool kShortAlongK = kLongA ? V.b_along_k() : V.a_along_k();

  GEMM_DEVICE static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  GEMM_DEVICE static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  GEMM_DEVICE static int slice() { return warp() / kWarpsRows; }
  // First k of this thread in a step.
  GEMM_DEVICE static int k_in_step() { return (slice() * kLanesK + lane() % kLanesK) * 4; }

  // Row i of lane `lane_row` in the tile of warp `warp`: quads of adjacent rows, neighbouring lanes next to each other.
  GEMM_DEVICE static int row(int warp, int lane_row, int i) {
    return warp % kWarpsRows * kShape.warp_rows + (i / 4 * kLanesRows + lane_row) * 4 + i % 4;
  }
};

// Four k of a lane's rows on their way to its registers, or there.
template <int Rows>
struct StreamStep {
  float value[4][Rows];
};

// The long operand of one block.
template <KernelVariant V>
struct LongOperand {
  using Layout = StreamLayout<V>;
  static constexpr int kRows = Layout::kRows;
  static constexpr bool kAlongK = Layout::kLongAlongK;
  static constexpr int kVec = Layout::kLongA ? V.vec_a : V.vec_b;
  static constexpr int kVecK = kAlongK ? kVec : 1, kVecRows = kAlongK ? 1 : kVec;  // of one load
  static constexpr int kPointers = kRows / kVecRows;
  using Step = StreamStep<kRows>;

  const float* pointer[kPointers];  // this lane's rows, at its first k of the round's first step
  long long ld;

  // `matrix` points at the block's first row and k; `rows` >= 1 rows are inside. Begins with step `last`.
  GEMM_DEVICE void init(const float* matrix, long long ld_in, int rows, int last) {
    ld = ld_in;
    const long long k = static_cast<long long>(last) * Layout::kStep + Layout::k_in_step();
    GEMM_UNROLL
    for (int i = 0; i < kPointers; ++i) {
      const int row = Layout::row(Layout::warp(), Layout::lane() / Layout::kLanesK, i * kVecRows);
      // Where rows are contiguous, kVec divides their number (variant_for), so that no load is cut.
      const long long inside = min(row, rows - kVecRows);
      pointer[i] = matrix + (kAlongK ? inside * ld + k : inside + k * ld);
    }
  }

  // The step that lies `back` steps before the round's first, all of it inside k.
  GEMM_DEVICE void load(Step& to, int back) const {
    GEMM_UNROLL
    for (int i = 0; i < kPointers; ++i) {
      GEMM_UNROLL
      for (int k = 0; k < 4; k += kVecK) load_piece<kVecK, kVecRows>(to, i, k, at(i, k - back * Layout::kStep));
    }
  }

  // The first step, of which only `depth` k, counted from this lane's first, are inside; the others become zeros.
  GEMM_DEVICE void load_tail(Step& to, int depth) const {
    if (depth >= 4) {
      load(to, 0);
      return;
    }
    to = {};
    GEMM_UNROLL
    for (int i = 0; i < kPointers; ++i) {
      GEMM_UNROLL
      for (int k = 0; k < 3; ++k)
        if (k < depth) load_piece<1, kVecRows>(to, i, k, at(i, k));
    }
  }

  GEMM_DEVICE void next_round() {
    GEMM_UNROLL
    for (int i = 0; i < kPointers; ++i) pointer[i] = at(i, -V.config.stages * Layout::kStep);
  }

 private:
  GEMM_DEVICE const float* at(int i, int k) const { return pointer[i] + (kAlongK ? k : k * ld); }

  // One load, of VecK k of one row or one k of VecRows rows.
  template <int VecK, int VecRows>
  GEMM_DEVICE static void load_piece(Step& to, int i, int k, const float* p) {
    float piece[VecK * VecRows];
    load_once(p, piece);
    GEMM_UNROLL
    for (int v = 0; v < VecK * VecRows; ++v) to.value[k + (VecK == 1 ? 0 : v)][i * VecRows + (VecK == 1 ? v : 0)] = piece[v];
  }
};

// The short operand of one block, copied chunk by chunk. Chunk 0 ends with the last step of k; where a chunk begins before
// the first one, only its upper part is filled.
template <KernelVariant V>
struct ShortOperand {
  using Layout = StreamLayout<V>;
  static constexpr int kColumns = Layout::kColumns;
  static constexpr bool kAlongK = Layout::kShortAlongK;
  static constexpr int kVec = !kAlongK ? 1 : Layout::kLongA ? V.vec_b : V.vec_a;  // a transposing copy moves single floats
  static constexpr int kLd = V.config.BK + kStreamPad;

  const float* matrix;  // the block's first column and k
  long long ld;
  int columns, depth;  // inside the matrix
  int end;             // of the last step

  GEMM_DEVICE static float* chunk(int number) { return dynamic_shared() + number % 2 * stream_chunk_floats(V.config); }

  GEMM_DEVICE bool has_chunk(int number) const { return end - number * V.config.BK > 0; }

  // Starts the copies of a chunk; what is not in the matrix becomes zeros.
  GEMM_DEVICE void copy(int number) const {
    const int begin = end - (number + 1) * V.config.BK;  // may lie before k = 0
    const int first = max(begin, 0), inside = depth - first;
    float* to = chunk(number) + (first - begin);
    const float* from = matrix + (kAlongK ? first : first * ld);
    const int pieces = (begin + V.config.BK - first) / kVec * kColumns;
    GEMM_NO_UNROLL
    for (int i = static_cast<int>(threadIdx.x); i < pieces; i += Layout::kThreads) {
      const int column = i % kColumns, k = i / kColumns * kVec;
      copy_piece(to + column * kLd + k, from + (kAlongK ? column * ld + k : column + k * ld),
                 column < columns ? inside - k : 0);
    }
    commit_copies();
  }

 private:
  // kVec floats, of which `count` are inside. A cp.async moves all or none (operand.cuh says why).
  GEMM_DEVICE static void copy_piece(float* to, const float* from, int count) {
    const char* source = reinterpret_cast<const char*>(from);
    if (kVec == 1 || count <= 0 || count >= kVec) {
      copy_async_or_zero<kVec>(to, source, 0, count > 0, true);
    } else {
      GEMM_UNROLL
      for (int v = 0; v < kVec; ++v) copy_async_or_zero<1>(to + v, source, 4 * v, v < count, true);
    }
  }
};

template <KernelVariant V>
struct StreamBlock {
  using Layout = StreamLayout<V>;
  static constexpr KernelConfig kConfig = V.config;
  static_assert(why_invalid(kConfig, DeviceLimits{}) == nullptr, "this configuration cannot run on any GPU");
  static constexpr int BM = kConfig.BM, BN = kConfig.BN;
  static constexpr int kRows = Layout::kRows, kColumns = Layout::kColumns, kStages = kConfig.stages;
  static constexpr int kLaneFloats = kRows * kColumns + kStreamPad;  // of one lane's sums in shared memory
  using End = TileEnd<BM, BN, Layout::kThreads, V.epilogue>;
  using Target = typename End::Target;
  using Sums = float[kColumns][kRows];

  // acc += four k of the lane's rows times those of every column; `columns` points at the lane's k in the chunk.
  GEMM_DEVICE static void multiply_step(Sums& acc, const StreamStep<kRows>& rows, const float* columns) {
    GEMM_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      const float4 four = *reinterpret_cast<const float4*>(columns + c * ShortOperand<V>::kLd);
      const float column[4] = {four.x, four.y, four.z, four.w};
      GEMM_UNROLL
      for (int k = 0; k < 4; ++k) {
        GEMM_UNROLL
        for (int r = 0; r < kRows; ++r) acc[c][r] = fmaf(rows.value[k][r], column[k], acc[c][r]);
      }
    }
  }

  // All `steps` steps.
  GEMM_DEVICE static void run(Sums& acc, LongOperand<V>& rows, const ShortOperand<V>& columns, int steps) {
    constexpr int kChunkRounds = kConfig.BK / (Layout::kStep * kStages);
    StreamStep<kRows> on_way[kStages];
    rows.load_tail(on_way[0], columns.depth - (steps - 1) * Layout::kStep - Layout::k_in_step());
    GEMM_UNROLL
    for (int s = 1; s < kStages; ++s)
      if (s < steps) rows.load(on_way[s], s);
    columns.copy(0);

    int chunk = 0, rounds = 0;  // that are left of the chunk
    const float* at = nullptr;
    GEMM_NO_UNROLL
    for (; steps > 0; steps -= kStages) {
      if (rounds == 0) {
        at = begin_chunk(columns, chunk++);
        rounds = kChunkRounds;
      }
      GEMM_UNROLL
      for (int s = 0; s < kStages; ++s) {
        if (s < steps) multiply_step(acc, on_way[s], at - s * Layout::kStep);
        if (s + kStages < steps) rows.load(on_way[s], s + kStages);
      }
      rows.next_round();
      at -= kStages * Layout::kStep;
      --rounds;
    }
  }

  // Waits for a chunk and starts the copies of the next; returns where this thread's k of its last step begin. The barrier
  // also says that nobody reads the chunk any more that those copies replace.
  GEMM_DEVICE static const float* begin_chunk(const ShortOperand<V>& columns, int chunk) {
    wait_copies<0>();
    block_barrier();
    if (columns.has_chunk(chunk + 1)) columns.copy(chunk + 1);
    return columns.chunk(chunk) + (kConfig.BK - Layout::kStep) + Layout::k_in_step();
  }

  // Position of a result in a tile [BN][BM].
  GEMM_DEVICE static int in_tile(int row, int column) { return Layout::kLongA ? column * BM + row : row * BM + column; }

  // Four sums whose results are adjacent rows of C, times alpha: number q of kRows * kColumns / 4.
  GEMM_DEVICE static float4 quad(const Sums& acc, int q, float alpha) {
    const int c = column_of(q), r = row_of(q);
    if constexpr (Layout::kLongA)
      return make_float4(alpha * acc[c][r], alpha * acc[c][r + 1], alpha * acc[c][r + 2], alpha * acc[c][r + 3]);
    else
      return make_float4(alpha * acc[c][r], alpha * acc[c + 1][r], alpha * acc[c + 2][r], alpha * acc[c + 3][r]);
  }
  // The lane's row and the column of a quad's first sum.
  GEMM_DEVICE static int row_of(int q) { return Layout::kLongA ? q % (kRows / 4) * 4 : q / (kColumns / 4); }
  GEMM_DEVICE static int column_of(int q) { return Layout::kLongA ? q / (kRows / 4) : q % (kColumns / 4) * 4; }

  // Without lanes along k: to a tile [BN][BM] in shared memory or in the workspace.
  GEMM_DEVICE static void store_tile(const Sums& acc, float* tile, float alpha) {
    GEMM_UNROLL
    for (int q = 0; q < kRows * kColumns / 4; ++q) {
      const int row = Layout::row(Layout::warp(), Layout::lane(), row_of(q));
      *reinterpret_cast<float4*>(tile + in_tile(row, column_of(q))) = quad(acc, q, alpha);
    }
  }

  // The same, straight to C.
  GEMM_DEVICE static void store_direct(const Sums& acc, const Target& target, float alpha) {
    GEMM_UNROLL
    for (int q = 0; q < kRows * kColumns / 4; ++q) {
      const int row = Layout::row(Layout::warp(), Layout::lane(), row_of(q)), column = column_of(q);
      store_four(target.out, target.row + (Layout::kLongA ? row : column), target.column + (Layout::kLongA ? column : row),
                 quad(acc, q, alpha));
    }
  }

  // The sums of the lanes along k meet in shared memory and are added in lane order, every warp for itself.
  GEMM_DEVICE static void add_lanes(const Sums& acc, float* tile, float alpha) {
    float* sums = dynamic_shared() + Layout::warp() * (32 * kLaneFloats);
    auto* own = reinterpret_cast<float4*>(sums + Layout::lane() * kLaneFloats);
    GEMM_UNROLL
    for (int q = 0; q < kRows * kColumns / 4; ++q) own[q] = quad(acc, q, alpha);
    warp_barrier();
    constexpr int kQuads = Layout::kLanesRows * kRows * kColumns / 4;
    for (int i = Layout::lane(); i < kQuads; i += 32) {
      const int q = i % (kRows * kColumns / 4), lane_row = i / (kRows * kColumns / 4);
      const float* first = sums + lane_row * Layout::kLanesK * kLaneFloats + q * 4;
      float4 sum = *reinterpret_cast<const float4*>(first);
      GEMM_UNROLL
      for (int l = 1; l < Layout::kLanesK; ++l) add(sum, *reinterpret_cast<const float4*>(first + l * kLaneFloats));
      *reinterpret_cast<float4*>(tile + in_tile(Layout::row(Layout::warp(), lane_row, row_of(q)), column_of(q))) = sum;
    }
  }

  // The slices' tiles meet in shared memory and are added in slice order.
  GEMM_DEVICE static void add_slices(const Sums& acc, const Target& target, float alpha) {
    float* tiles = dynamic_shared() + stream_lane_floats(kConfig);
    block_barrier();  // the chunks are free
    if constexpr (Layout::kLanesK > 1)
      add_lanes(acc, tiles + Layout::slice() * (BM * BN), alpha);
    else
      store_tile(acc, tiles + Layout::slice() * (BM * BN), alpha);
    block_barrier();
    for (int q = static_cast<int>(threadIdx.x); q < End::kQuads; q += Layout::kThreads) {
      const auto* partial = reinterpret_cast<const float4*>(tiles) + q;
      float4 sum = *partial;
      GEMM_UNROLL
      for (int s = 1; s < kConfig.slices; ++s) add(sum, partial[s * End::kQuads]);
      End::put(target, q, sum);
    }
  }

  GEMM_DEVICE static TileItem item_of_block(const TileArgs& args) {
    int tile_m = 0, tile_n = 0;
    // A single row or column of tiles needs no divisions, which delay the first load by a few hundred cycles.
    if (args.tiles_n == 1)
      tile_m = static_cast<int>(blockIdx.x);
    else if (args.tiles_m == 1)
      tile_n = static_cast<int>(blockIdx.x);
    else
      tile_position(static_cast<int>(blockIdx.x), args.tiles_m, args.tiles_n, args.raster_group, tile_m, tile_n);
    return block_item<BM, BN>(args, tile_m, tile_n);
  }

  GEMM_DEVICE static void finish(const Sums& acc, const Target& target, float alpha, bool use_tickets) {
    if constexpr (kConfig.slices > 1 || Layout::kLanesK > 1) {
      add_slices(acc, target, alpha);
    } else if (target.split_k == 1) {
      store_direct(acc, target, alpha);
    } else {
      store_tile(acc, reinterpret_cast<float*>(End::partial_tile(target, target.split)), alpha);
    }
    if (target.split_k == 1 || !use_tickets) return;
    auto* flag = reinterpret_cast<unsigned*>(dynamic_shared() + stream_trailer_offset(kConfig) / 4);
    if (End::is_last_block(target, flag)) End::reduce_splits(target, reinterpret_cast<float4*>(dynamic_shared()));
  }
};

template <KernelVariant V>
GEMM_DEVICE void stream(const TileArgs& args) {
  if (only_scales<V>(args)) return;
  if constexpr (may_be_unaligned(V)) {
    if (!is_aligned<V>(args, blockIdx.z)) {
      stream<with_single_floats(V)>(args);
      return;
    }
  }
  using S = StreamBlock<V>;
  const TileItem item = S::item_of_block(args);
  const long long row = item.row, column = item.column, k = item.k_begin;
  const float* a = matrix_a<V>(args, item.batch) + (V.op_a == Op::N ? row + k * args.lda : row * args.lda + k);
  const float* b = matrix_b<V>(args, item.batch) + (V.op_b == Op::N ? column * args.ldb + k : column + k * args.ldb);
  const int rows_a = args.m - item.row, rows_b = args.n - item.column;
  constexpr bool kLongA = S::Layout::kLongA;

  const int steps = (item.depth + S::Layout::kStep - 1) / S::Layout::kStep;
  LongOperand<V> rows;
  rows.init(kLongA ? a : b, kLongA ? args.lda : args.ldb, kLongA ? rows_a : rows_b, steps - 1);
  const ShortOperand<V> columns{kLongA ? b : a, kLongA ? args.ldb : args.lda, kLongA ? rows_b : rows_a, item.depth,
                                steps * S::Layout::kStep};
  typename S::Sums acc = {};
  S::run(acc, rows, columns, steps);
  S::finish(acc, block_target<V>(args, item), alpha_of<V>(args), args.use_tickets != 0);
}

}  // namespace gemm
