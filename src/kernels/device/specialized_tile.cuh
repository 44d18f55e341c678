// The warp-specialised tile kernel (sm_90): computing warps, and one warpgroup that only copies. Blocks are persistent, so
// the copies for the next tile arrive while this one is stored.
//
//   warps 0 ...            compute: wait for full[s] -> fragments -> FMAs -> hand back empty[s]      240 or fewer registers
//   the last four warps    copy:    wait for empty[s] -> copy stage s -> full[s]                      40 or 48 registers
//                                   (one thread of them, where all copies are boxes)
//
//   shared memory: ring.cuh has the map; a stage holds A as [BK][BM] and B as [BK][BN], with rows fast whatever the layout
//   in global memory. An operand that is contiguous along k is transposed on the way, its lines padded by 4 floats. With
//   LoadPath::warp_specialized_k it stays along k where it is aligned, swizzled as tma_tile.cuh draws it.
//
// The main loop is rotated: a pass begins with the FMAs of the last step of the stage before (zeros in the first pass),
// while the first fragments of this stage are on their way. The wait is its only block border, so ptxas keeps the
// accumulators in place. A pass ends with handing back the stage before this one: the registers that held its last fragments
// were loaded again in this pass, so its loads have returned and no copy can overtake them.
#pragma once

#include "kernels/device/ring.cuh"
#include "kernels/device/steps_ahead.cuh"
#include "kernels/device/tile.cuh"
#include "kernels/device/work.cuh"

namespace gemm {

// The copies of one operand by the copying warpgroup: boxes by the tensor copy engine where rows are contiguous and aligned,
// else single floats by cp.async, which transpose where k is contiguous. `rows` and `depth` of a stage lie in the matrix,
// the rest of it gets zeros.
template <KernelVariant V, bool IsA>
struct CopiedOperand {
  static constexpr OperandLayout kLayout = IsA ? layout_a(V) : layout_b(V);
  static constexpr bool kAlongK = kLayout.k_contiguous;
  static constexpr bool kBox = (IsA ? V.vec_a : V.vec_b) == 4 && (!kAlongK || kLayout.k_fast);
  static constexpr int kRows = kLayout.rows, kDepth = V.config.BK, kLd = kLayout.ld;
  static constexpr int kWarps = 4;

  // Along k a warp copies 64 bytes of each of two rows, or 32 of four; across k it copies 32 rows of one k.
  static constexpr int kLanesOfRow = !kAlongK ? 1 : kDepth < 16 ? 8 : 16;
  static constexpr int kRowsOfWarp = 32 / kLanesOfRow;
  static constexpr int kWarpsOfRow = kAlongK ? kDepth / kLanesOfRow : 1;
  static constexpr int kRowsPerPass = kAlongK ? kRowsOfWarp * kWarps / kWarpsOfRow : kRowsOfWarp;
  static constexpr int kLinesPerPass = kAlongK ? kDepth : kWarps;
  static constexpr int kPasses = kAlongK ? (kRows + kRowsPerPass - 1) / kRowsPerPass : kDepth / kLinesPerPass;
  static constexpr int kPieces = kAlongK ? 1 : (kRows + 31) / 32;  // of one line
  static constexpr bool kEven = kAlongK ? kRows % kRowsPerPass == 0 : kRows % 32 == 0;
  static constexpr int kPassStep = kAlongK ? kRowsPerPass : kLinesPerPass * kLd;  // in a stage

  GEMM_DEVICE static int row_of(int thread) {
    if constexpr (!kAlongK) return thread % 32;
    return thread % 32 / kLanesOfRow + thread / 32 / kWarpsOfRow * kRowsOfWarp;
  }
  GEMM_DEVICE static int k_of(int thread) {
    if constexpr (!kAlongK) return thread / 32;
    return thread % kLanesOfRow + thread / 32 % kWarpsOfRow * kLanesOfRow;
  }
  GEMM_DEVICE static float* place(float* stage, int thread) { return stage + k_of(thread) * kLd + row_of(thread); }
  // `source` points at the stage's first row and k.
  GEMM_DEVICE static const char* origin(const float* source, long long ld, int thread) {
    const int row = row_of(thread), k = k_of(thread);
    return reinterpret_cast<const char*>(source + (kAlongK ? row * ld + k : row + k * ld));
  }
  GEMM_DEVICE static long long pass_bytes(long long ld) { return (kAlongK ? kRowsPerPass : kLinesPerPass) * ld * 4; }
  // Whether piece j of pass i lies in the stage at all.
  GEMM_DEVICE static bool exists(int thread, int i, int j) {
    return kEven || row_of(thread) + (kAlongK ? i * kRowsPerPass : j * 32) < kRows;
  }

  // Single floats of a stage that lies in the matrix.
  GEMM_DEVICE static void copy_whole(float* stage, const float* source, long long ld, int thread) {
    float* to = place(stage, thread);
    const char* line = origin(source, ld, thread);
    GEMM_UNROLL
    for (int i = 0; i < kPasses; ++i) {
      GEMM_UNROLL
      for (int j = 0; j < kPieces; ++j) copy_async<1>(to + i * kPassStep + j * 32, line, j * 128u, exists(thread, i, j));
      line += pass_bytes(ld);
    }
  }

  // And of any other. Rolled, because its registers count: where they do not suffice, ptxas lays out the computing side
  // badly too (register conflicts of 200 instead of 40 cycles a pass).
  GEMM_DEVICE static void copy_edge(float* stage, const float* source, long long ld, int thread, int rows, int depth) {
    float* to = place(stage, thread);
    const char* line = origin(source, ld, thread);
    int row = row_of(thread), k = k_of(thread);
    GEMM_NO_UNROLL
    for (int i = 0; i < kPasses; ++i) {
      GEMM_UNROLL
      for (int j = 0; j < kPieces; ++j)
        copy_async_or_zero<1>(to + j * 32, line, j * 128u, row + j * 32 < rows && k < depth, exists(thread, i, j));
      line += pass_bytes(ld);
      to += kPassStep;
      (kAlongK ? row : k) += kAlongK ? kRowsPerPass : kLinesPerPass;
    }
  }
};

template <KernelVariant V>
struct SpecializedTile {
  static constexpr KernelConfig kConfig = V.config;
  using T = Tile<V>;
  using R = Ring<V>;
  using CopyA = CopiedOperand<V, true>;
  using CopyB = CopiedOperand<V, false>;
  static constexpr int kComputing = kConfig.compute_threads(), kCopying = 128;
  static constexpr int kStages = R::kStages, kDepth = T::BK / T::kSlices;
  static constexpr int kRows = T::kRows, kColumns = T::kColumns;
  static constexpr bool kAnyBox = CopyA::kBox || CopyB::kBox, kAnySingle = !CopyA::kBox || !CopyB::kBox;
  static constexpr int kBoxBytes = (CopyA::kBox ? T::BM * T::BK * 4 : 0) + (CopyB::kBox ? T::BN * T::BK * 4 : 0);
  // Arrivals on a full barrier: of the thread that starts the boxes, and of every thread's own copies.
  static constexpr int kFullArrivals = (kAnyBox ? 1 : 0) + (kAnySingle ? kCopying : 0);

  // ------------------------------------------------------------------------------------------------ the copying warpgroup

  GEMM_DEVICE static void copy_boxes(const TmaTileArgs& args, const TileItem& item, int k, SharedPointer stage,
                                     SharedPointer full) {
    barrier_arrive_expecting(full, kBoxBytes);
    if constexpr (CopyA::kBox)
      BoxOperand<V, true>::copy(stage, args.map_a, item.row, k, args.tile.stride_a == 0 ? 0 : item.batch, full);
    if constexpr (CopyB::kBox)
      BoxOperand<V, false>::copy(stage + R::kBOffset, args.map_b, item.column, k, args.tile.stride_b == 0 ? 0 : item.batch,
                                 full);
  }

  template <class Copy>
  GEMM_DEVICE static void copy_singles(float* stage, const float* source, long long ld, int thread, int rows, int depth) {
    if constexpr (!Copy::kBox) {
      if (rows >= Copy::kRows && depth >= Copy::kDepth)
        Copy::copy_whole(stage, source, ld, thread);
      else
        Copy::copy_edge(stage, source, ld, thread, rows, depth);
    }
  }

  // Only threads that arrive on the full barriers may wait for the empty ones, since only they keep the ring from going on
  // without them. A thread that looked on and fell behind by a round would find the parity that it waits for gone, and for
  // ever behind the last round. So where all copies are boxes, one thread copies.
  GEMM_DEVICE static void copy_stages(const TmaTileArgs& args, float* shared, int thread) {
    if (!kAnySingle && thread != 0) return;
    const TileArgs& tile = args.tile;
    const SharedPointer base = shared_pointer(shared);
    const Work<V> work{tile};
    int s = 0;
    unsigned parity = 1;  // a fresh barrier has ended the phase before its first one
    for (int number = work.first(); number != work.kEnd; number = work.next(number)) {
      const TileItem item = work.item_of(number);
      const long long row = item.row, column = item.column, k_begin = item.k_begin;
      const float* a = matrix_a<V>(tile, item.batch);
      const float* b = matrix_b<V>(tile, item.batch);
      a += V.a_along_k() ? row * tile.lda + k_begin : row + k_begin * tile.lda;
      b += V.b_along_k() ? column * tile.ldb + k_begin : column + k_begin * tile.ldb;
      const int end = item.k_begin + item.depth;
      GEMM_NO_UNROLL
      for (int k = item.k_begin; k < end; k += T::BK) {
        const SharedPointer full = base + R::kFull + 8 * s;
        float* stage = shared + s * (R::kStageBytes / 4);
        barrier_wait(base + R::kEmpty + 8 * s, parity);
        if (kAnyBox && thread == 0) copy_boxes(args, item, k, base + s * R::kStageBytes, full);
        copy_singles<CopyA>(stage, a, tile.lda, thread, tile.m - item.row, tile.k - k);
        copy_singles<CopyB>(stage + R::kBOffset / 4, b, tile.ldb, thread, tile.n - item.column, tile.k - k);
        if constexpr (kAnySingle) barrier_arrive_after_copies(full);
        a += V.a_along_k() ? T::BK : T::BK * tile.lda;
        b += V.b_along_k() ? T::BK : T::BK * tile.ldb;
        if (++s == kStages) s = 0, parity ^= 1;
      }
    }
  }

  // ------------------------------------------------------------------------------------------------- the computing warps

  static constexpr bool kInPlace = fragments_in_place(kConfig);
  static constexpr bool kARepeats = kConfig.order == FmaOrder::columns;  // each value of A meets every column in turn
  using AheadA = typename AheadOfFmas<kRows, kConfig.TM, kConfig.lanes_m(), T::kLayoutA, kInPlace, kARepeats>::type;
  using AheadB = typename AheadOfFmas<kColumns, kConfig.TN, kConfig.lanes_n(), T::kLayoutB, kInPlace, !kARepeats>::type;

  // Where this thread stands in the ring.
  struct Position {
    AheadA a;
    AheadB b;
    SharedPointer full, empty;  // barrier of the stage; and of the stage before, to hand back
    int stage;                  // counted, since ptxas would find the address of the last one anew in every pass
    unsigned parity;
  };

  GEMM_DEVICE static void hand_back_and_step_on(Position& at) {
    warp_barrier();
    if (threadIdx.x % 32 == 0) barrier_arrive(at.empty);
    at.empty = at.full + 8 * kStages;
    const bool wrap = ++at.stage == kStages;
    at.stage = wrap ? 0 : at.stage;
    const int step = wrap ? -(kStages - 1) * R::kStageBytes : R::kStageBytes;
    at.a.move(step), at.b.move(step);
    at.full += wrap ? -8 * (kStages - 1) : 8;
    at.parity ^= wrap ? 1 : 0;
  }

  // One stage. Its first FMAs are those of the last step of the stage before.
  GEMM_DEVICE static void multiply_stage(float (&acc)[kRows][kColumns], Position& at) {
    GEMM_UNROLL
    for (int k = 0; k < kDepth; ++k) {
      const int before = k == 0 ? kDepth - 1 : k - 1;
      if constexpr (kInPlace) {
        multiply_while_loading<kConfig.order>(acc, at.a, at.b, before, k);
        if (k == kDepth - 1) hand_back_and_step_on(at);
      } else {
        at.a.load(k);
        at.b.load(k);
        if (k == kDepth - 1) hand_back_and_step_on(at);
        multiply<kConfig.order>(acc, at.a.step(before), at.b.step(before));
      }
    }
  }

  GEMM_DEVICE static void multiply_item(float (&acc)[kRows][kColumns], Position& at, int stages) {
    GEMM_UNROLL
    for (int i = 0; i < kRows; ++i) at.a.last()[i] = 0.0f;
    GEMM_UNROLL
    for (int j = 0; j < kColumns; ++j) at.b.last()[j] = 0.0f;
    GEMM_NO_UNROLL
    for (int left = stages; left > 0; --left) {
      barrier_wait(at.full, at.parity);
      multiply_stage(acc, at);
    }
    multiply<kConfig.order>(acc, at.a.step(kDepth - 1), at.b.step(kDepth - 1));
  }

  // Computed anew wherever it is needed, so that nothing of it lives through the main loop.
  GEMM_DEVICE static T tile_of_thread() {
    int thread = static_cast<int>(threadIdx.x);
    forget(thread);
    T tile;
    tile.init(thread);
    return tile;
  }

  GEMM_DEVICE static void compute_items(const TileArgs& args, const T& tile) {
    const SharedPointer base = shared_pointer(tile.shared);
    const int first_k = tile.slice * kDepth;
    Position at;
    at.a.init(base, tile.warp_m * kConfig.WM, tile.lane_m, first_k);
    at.b.init(base + R::kBOffset, tile.warp_n * kConfig.WN, tile.lane_n, first_k);
    at.full = base + R::kFull, at.empty = base + R::kSpare, at.stage = 0, at.parity = 0;
    const Work<V> work{args};
    for (int number = work.first(); number != work.kEnd; number = work.next(number)) {
      float acc[kRows][kColumns];
      zero<kConfig.acc_init, kConfig.order>(acc, tile.trailer());
      multiply_item(acc, at, (work.item_of(number).depth + T::BK - 1) / T::BK);
      forget(number);
      const T again = tile_of_thread();
      again.finish(acc, work.target_of(number), alpha_of<V>(args), args.use_tickets != 0,
                   reinterpret_cast<unsigned*>(again.shared + R::kFlag / 4));
    }
  }
};

template <KernelVariant V>
GEMM_DEVICE void specialized_tile(const TmaTileArgs& args) {
  if (only_scales<V>(args.tile)) return;
  using S = SpecializedTile<V>;
  Tile<V> tile;
  tile.init(static_cast<int>(threadIdx.x));
  if (threadIdx.x < 4) tile.trailer()[threadIdx.x] = 0.0f;
  if (threadIdx.x == 0) Ring<V>::init(shared_pointer(tile.shared), S::kFullArrivals, S::kComputing / 32);
  block_barrier();
  if (threadIdx.x >= S::kComputing) {
    give_registers<copy_registers(V)>();
    S::copy_stages(args, tile.shared, static_cast<int>(threadIdx.x) - S::kComputing);
  } else {
    take_registers<compute_registers(V.config, copy_registers(V))>();
    S::compute_items(args.tile, tile);
  }
}

}  // namespace gemm
