// The tile kernel fed by the tensor copy engine (sm_90+): one lane of the first warp starts the copies of whole boxes, so
// the main loop holds no addresses, bounds or copies, only fragment loads and FMAs.
//
//   shared memory: ring.cuh has the map of the stages and their barriers
//
//   A or B with contiguous rows     with contiguous k (span = 16 or 32 floats)
//     k0: r0 r1 r2 ..                 k0..span-1:  r0: p0 p1 p2 ..   pieces of 4 floats; piece p of row r lies at
//     k1: r0 r1 r2 ..                              r1: p0 p1 p2 ..   p ^ (r % 8) (span 32) or p ^ (r / 2 % 4) (span 16),
//                                     next span:   r0: ..            so that 8 neighbouring rows meet 8 bank groups
//
// The engine fills zeros beyond the rows and k of the matrix, so edges and tails cost nothing here. Tile and slices, the sum
// of the slices, splits and stores are those of tile.cuh.
//
// Main loop of one warp: wait for the stage; load fragments one step (four, with contiguous k) ahead of the FMAs. The stage
// before is handed back in the third step, when the fragments that were read from it have been multiplied: right behind the
// last load, a copy that hits L1 could overtake it. Then the first warp starts the copy that fills it again.
#pragma once

#include "kernels/device/ring.cuh"
#include "kernels/device/tile.cuh"

namespace gemm {

// A fragment, double-buffered, of an operand with rows fast: one step of k at a time.
template <class Rows, int Count, OperandLayout Layout>
struct RowsAhead {
  float value[2][Count];
  int offset;

  GEMM_DEVICE void init(int first_row, int lane, int first_k) {
    this->lane = lane;
    offset = first_k * Layout.ld + first_row;
  }
  GEMM_DEVICE void load(const float* operand, int k) {
    Rows::load_rows(value[k & 1], operand + offset + k * Layout.ld, lane);
  }
  // In step k: what the steps after it need.
  template <int Depth>
  GEMM_DEVICE void load_ahead(const float* operand, int k) {
    if (k + 1 < Depth) load(operand, k + 1);
  }
  GEMM_DEVICE const float (&step(int k) const)[Count] { return value[k & 1]; }

 private:
  int lane;
};

// And of an operand with k fast, swizzled: four steps at a time. The lane owns every Lanes-th row, so all its rows are
// swizzled by its own pattern xor a constant: one offset for each piece of a span is enough, and the loop computes no
// addresses.
template <int Count, int Lanes, OperandLayout Layout>
struct PiecesAhead {
  static constexpr int kSpan = Layout.ld, kPieces = kSpan / 4;
  static constexpr int kLoadStep = 1;  // of four: the next four steps are loaded here

  float value[2][4][Count];
  int offset[kPieces];

  GEMM_DEVICE void init(int first_row, int lane, int first_k) {
    const int row = first_row + lane, piece = first_k / 4;
    GEMM_UNROLL
    for (int p = 0; p < kPieces; ++p)
      offset[p] =
          piece / kPieces * Layout.rows * kSpan + row * kSpan + ((piece % kPieces ^ swizzle_pattern<kSpan>(lane) ^ p) * 4);
  }
  GEMM_DEVICE void load(const float* operand, int k) {
    GEMM_UNROLL
    for (int i = 0; i < Count; ++i) {
      const float* p = operand + offset[k / 4 % kPieces ^ swizzle_pattern<kSpan>(i * Lanes)] +
                       k / kSpan * Layout.rows * kSpan + i * Lanes * kSpan;
      const float4 v = *reinterpret_cast<const float4*>(p);
      float(&to)[4][Count] = value[k / 4 & 1];
      to[0][i] = v.x, to[1][i] = v.y, to[2][i] = v.z, to[3][i] = v.w;
    }
  }
  template <int Depth>
  GEMM_DEVICE void load_ahead(const float* operand, int k) {
    if (k % 4 == kLoadStep && k - kLoadStep + 4 < Depth) load(operand, k - kLoadStep + 4);
  }
  GEMM_DEVICE const float (&step(int k) const)[Count] { return value[k / 4 & 1][k % 4]; }
};

template <class Rows, int Count, int Lanes, OperandLayout Layout>
struct AheadOf {
  using type = RowsAhead<Rows, Count, Layout>;
};
template <class Rows, int Count, int Lanes, OperandLayout Layout>
requires(Layout.k_fast) struct AheadOf<Rows, Count, Lanes, Layout> {
  using type = PiecesAhead<Count, Lanes, Layout>;
};

template <KernelVariant V>
struct TmaTile {
  using T = Tile<V>;
  using R = Ring<V>;
  using BoxA = BoxOperand<V, true>;
  using BoxB = BoxOperand<V, false>;
  using AheadA = typename AheadOf<typename T::FragmentA, T::kRows, V.config.lanes_m(), T::kLayoutA>::type;
  using AheadB = typename AheadOf<typename T::FragmentB, T::kColumns, V.config.lanes_n(), T::kLayoutB>::type;
  static constexpr int kStages = R::kStages, kDepth = T::BK / T::kSlices;
  static constexpr int kReleaseStep = 2;

  const TmaTileArgs& args;
  T tile;
  TileItem item;
  SharedPointer shared;

  GEMM_DEVICE int batch_of(long long stride) const { return stride == 0 ? 0 : item.batch; }

  // The copies of block t of this item's k, into stage s. By one thread.
  GEMM_DEVICE void copy(int t, int s) const {
    const SharedPointer full = shared + R::kFull + 8 * s, stage = shared + s * R::kStageBytes;
    const int k = item.k_begin + t * T::BK;
    barrier_arrive_expecting(full, BoxA::kBytes + BoxB::kBytes);
    BoxA::copy(stage, args.map_a, item.row, k, batch_of(args.tile.stride_a), full);
    BoxB::copy(stage + R::kBOffset, args.map_b, item.column, k, batch_of(args.tile.stride_b), full);
  }

  // Hands stage s back, which held block t, and fills it again with the block that comes a ring later.
  GEMM_DEVICE void release(int t, int s, unsigned parity, int blocks) const {
    const SharedPointer empty = shared + R::kEmpty + 8 * s;
    warp_barrier();
    if (threadIdx.x % 32 == 0) barrier_arrive(empty);
    if (threadIdx.x >= 32 || t + kStages >= blocks) return;
    barrier_wait(empty, parity);
    if (threadIdx.x == 0) copy(t + kStages, s);
  }

  GEMM_DEVICE void run(float (&acc)[T::kRows][T::kColumns]) {
    const int blocks = (item.depth + T::BK - 1) / T::BK;
    if (threadIdx.x == 0)
      for (int t = 0; t < min(blocks, kStages); ++t) copy(t, t);
    zero<V.config.acc_init, V.config.order>(acc, tile.trailer());
    AheadA a;
    AheadB b;
    a.init(tile.warp_m * V.config.WM, tile.lane_m, tile.slice * kDepth);
    b.init(tile.warp_n * V.config.WN, tile.lane_n, tile.slice * kDepth);
    int s = 0, before = 0;
    unsigned parity = 0, parity_before = 0;
    GEMM_NO_UNROLL
    for (int t = 0; t < blocks; ++t) {
      barrier_wait(shared + R::kFull + 8 * s, parity);
      const float *stage_a = tile.stage_a(s), *stage_b = tile.stage_b(s);
      a.load(stage_a, 0);
      b.load(stage_b, 0);
      GEMM_UNROLL
      for (int k = 0; k < kDepth; ++k) {
        a.template load_ahead<kDepth>(stage_a, k);
        b.template load_ahead<kDepth>(stage_b, k);
        if (k == kReleaseStep && t > 0) release(t - 1, before, parity_before, blocks);
        multiply<V.config.order>(acc, a.step(k), b.step(k));
      }
      before = s, parity_before = parity;
      if (++s == kStages) s = 0, parity ^= 1;
    }
  }
};

template <KernelVariant V>
GEMM_DEVICE void tma_tile(const TmaTileArgs& args) {
  if (only_scales<V>(args.tile)) return;
  using T = Tile<V>;
  const TileItem item = T::item_of_block(args.tile);
  TmaTile<V> self{args, {}, item, shared_pointer(dynamic_shared())};
  self.tile.init(static_cast<int>(threadIdx.x));
  if (threadIdx.x < 4) self.tile.trailer()[threadIdx.x] = 0.0f;
  if (threadIdx.x == 0) Ring<V>::init(self.shared, 1, T::kThreads / 32);
  block_barrier();
  float acc[T::kRows][T::kColumns];
  self.run(acc);
  self.tile.finish(acc, block_target<V>(args.tile, item), alpha_of<V>(args.tile), args.tile.use_tickets != 0,
                   reinterpret_cast<unsigned*>(self.tile.trailer()));
}

}  // namespace gemm
