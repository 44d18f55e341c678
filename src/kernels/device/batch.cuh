// Many tiny products: one warp computes a whole matrix of a batch, and no warp waits for another.
//
//   block                         a warp's C, BM x BN             a warp's shared memory
//   +--------+--------+-----      +-----------+                   | A0 | B0 | A1 | B1 | ... |   chunks of BK of k
//   | matrix | matrix | ...       | l0  l1  . |  a lane: TM x TN  |      C, padded      |       later, in the same place
//   | warp 0 | warp 1 |           | l2  l3  . |  of each sub-tile
//   +--------+--------+-----      +-----------+                   all of it `slices` times in a block
//
//   global --cp.async--> ring of `stages` chunks --> registers --> FMA --> C
//
// An operand that is contiguous along k stays so in shared memory ([rows][BK + 4], read four steps of k at once), the other
// one is [BK][rows]. Rows that the matrix does not have are not copied: what lies there instead feeds only results that are
// not stored. Steps of k that it does not have are zeros in both operands, up to the next multiple of four.
//
// A lane that holds four adjacent rows stores them with one access where C allows it. Everything else goes through shared
// memory, so that neighbouring lanes write neighbouring rows. Both end in epilogue.cuh's stores, which do beta * C and the
// epilogue.
#pragma once

#include "kernels/device/epilogue.cuh"
#include "kernels/device/fragment.cuh"
#include "kernels/device/platform.cuh"

namespace gemm {

// The smallest power of two that is no less than `pieces`, but at most a warp.
constexpr int lanes_for(int pieces) {
  int lanes = 1;
  while (lanes < pieces && lanes < 32) lanes *= 2;
  return lanes;
}

// One operand of a warp's matrix on its way to shared memory. Some lanes, a power of two, share a line (the contiguous
// direction), so that a lane keeps its place in a line and goes on by a constant number of lines: its addresses are a chain
// of additions, and none of them has to be kept in a register during the multiplication.
template <KernelVariant V, bool IsA>
struct BatchOperand {
  static constexpr OperandLayout kLayout = IsA ? layout_a(V) : layout_b(V);
  static constexpr bool kAlongK = kLayout.k_contiguous;
  static constexpr int kDepth = V.config.BK;
  static constexpr int kVec = IsA ? V.vec_a : V.vec_b;
  static constexpr int kLength = kAlongK ? kDepth : kLayout.rows;  // of a line
  static constexpr int kLines = kAlongK ? kLayout.rows : kDepth;
  static constexpr int kLanes = lanes_for(kLength / kVec);  // that share a line
  static constexpr int kSegment = kLanes * kVec;            // of a line, what they copy at once
  static constexpr int kSegments = (kLength + kSegment - 1) / kSegment;
  static constexpr int kLinesPerPass = 32 / kLanes;
  static constexpr int kPasses = (kLines + kLinesPerPass - 1) / kLinesPerPass;

  const char* from;  // this lane's first float of the next chunk
  long long ld;
  int line, position;  // of this lane in the first pass
  int rows;

  GEMM_DEVICE void init(const float* matrix, long long leading, int row_count, int lane) {
    line = lane / kLanes;
    position = lane % kLanes * kVec;
    ld = leading;
    rows = row_count;
    from = reinterpret_cast<const char*>(matrix + line * ld + position);
  }

  // The next chunk, of which `depth` >= 1 is left (or more than a chunk).
  GEMM_DEVICE void copy(float* chunk, int depth) {
    if (depth >= kDepth)
      copy_lines<false>(chunk, depth);
    else
      copy_lines<true>(chunk, depth);
    from += (kAlongK ? kDepth : kDepth * ld) * 4;
  }

  template <bool Tail>
  GEMM_DEVICE void copy_lines(float* chunk, int depth) const {
    float* to = chunk + line * kLayout.ld + position;
    const char* source = from;
    GEMM_UNROLL
    for (int pass = 0; pass < kPasses; ++pass) {
      GEMM_UNROLL
      for (int s = 0; s < kSegments; ++s)
        copy_piece<Tail>(to + pass * kLinesPerPass * kLayout.ld + s * kSegment, source + 4 * kSegment * s,
                         line + pass * kLinesPerPass, position + s * kSegment, depth);
      source += 4 * kLinesPerPass * ld;
    }
  }

  // No piece is cut by the last row: where rows are contiguous, kVec divides their number. A tail is filled with zeros up to
  // a multiple of four.
  template <bool Tail>
  GEMM_DEVICE void copy_piece(float* to, const char* source, int piece_line, int piece_position, int depth) const {
    const int k = kAlongK ? piece_position : piece_line, row = kAlongK ? piece_line : piece_position;
    const bool on = (kLines % kLinesPerPass == 0 || piece_line < kLines) &&
                    (kLength % kSegment == 0 || piece_position < kLength) && row < rows;
    if constexpr (!Tail) {
      copy_async<kVec>(to, source, 0u, on);
      return;
    }
    const bool filled = on && k < (depth + 3) / 4 * 4;
    if (!kAlongK || kVec == 1 || k + kVec <= depth) {
      copy_async_or_zero<kVec>(to, source, 0u, k < depth, filled);
    } else {
      GEMM_UNROLL
      for (int e = 0; e < kVec; ++e) copy_async_or_zero<1>(to + e, source, 4u * e, k + e < depth, filled);
    }
  }
};

template <KernelVariant V>
struct BatchProduct {
  static constexpr KernelConfig kConfig = V.config;
  static_assert(why_invalid(kConfig, DeviceLimits{}) == nullptr, "this configuration cannot run on any GPU");

  static constexpr int BM = kConfig.BM, BN = kConfig.BN, BK = kConfig.BK;
  static constexpr int kStages = kConfig.stages;
  static constexpr int kRows = kConfig.thread_rows(), kColumns = kConfig.thread_columns();
  static constexpr OperandLayout kLayoutA = layout_a(V), kLayoutB = layout_b(V);
  using FragmentA = Fragment<kConfig.WMITER(), kConfig.TM, kConfig.lanes_m(), kLayoutA.k_fast, kLayoutA.ld>;
  using FragmentB = Fragment<kConfig.WNITER, kConfig.TN, kConfig.lanes_n(), kLayoutB.k_fast, kLayoutB.ld>;
  static constexpr int kSteps = 4;  // of k in a fragment
  // Fragments in one run of straight code. 256 FMAs (4 KB) hide the latency of shared memory; each warp runs the code only
  // a few times, so that more of it would have to be fetched for little use.
  static constexpr int kFmasPerGroup = kRows * kColumns * kSteps;
  static constexpr int kFitting = 256 / kFmasPerGroup > 0 ? 256 / kFmasPerGroup : 1;
  static constexpr int kGroupsPerPass = kFitting < BK / kSteps ? kFitting : BK / kSteps;
  // Rows that a lane can store at once.
  static constexpr int kAdjacent = FragmentA::kAdjacent % 4 == 0 ? 4 : 1;
  static constexpr int kColumnFloats = batch_column_floats(kConfig);
  using Out = Output<V.epilogue>;

  float* shared;  // this warp's
  int lane, lane_m, lane_n;

  GEMM_DEVICE void init(int warp, int lane_index) {
    shared = dynamic_shared() + warp * batch_warp_floats(V);
    lane = lane_index;
    lane_position<kConfig.lanes_m()>(lane, lane_m, lane_n);
  }

  GEMM_DEVICE float* chunk_a(int slot) const { return shared + slot * stage_floats(V); }
  GEMM_DEVICE float* chunk_b(int slot) const { return chunk_a(slot) + kLayoutA.floats; }

  GEMM_DEVICE static int next_slot(int slot) { return slot == kStages - 1 ? 0 : slot + 1; }

  GEMM_DEVICE void multiply_group(float (&acc)[kRows][kColumns], int slot, int group) const {
    float a[kSteps][kRows], b[kSteps][kColumns];
    FragmentA::load(a, chunk_a(slot), lane_m, group * kSteps);
    FragmentB::load(b, chunk_b(slot), lane_n, group * kSteps);
    GEMM_UNROLL
    for (int s = 0; s < kSteps; ++s) multiply<kConfig.order>(acc, a[s], b[s]);
  }

  GEMM_DEVICE void multiply_chunk(float (&acc)[kRows][kColumns], int slot, int depth) const {
    const int groups = (min(depth, BK) + kSteps - 1) / kSteps;
    int group = 0;
    GEMM_NO_UNROLL
    for (; group + kGroupsPerPass <= groups; group += kGroupsPerPass) {
      GEMM_UNROLL
      for (int g = 0; g < kGroupsPerPass; ++g) multiply_group(acc, slot, group + g);
    }
    GEMM_NO_UNROLL
    for (; group < groups; ++group) multiply_group(acc, slot, group);
  }

  // One loop copies and multiplies, the latter kStages - 1 chunks behind: the code of a copy is there once.
  GEMM_DEVICE void run(float (&acc)[kRows][kColumns], BatchOperand<V, true>& a, BatchOperand<V, false>& b, int k) const {
    constexpr int kBehind = (kStages - 1) * BK;
    zero<AccInit::plain, kConfig.order>(acc, nullptr);
    int write = 0, read = 0;
    GEMM_NO_UNROLL
    for (int begin = 0; begin < k + kBehind; begin += BK) {
      if (kStages == 1 || begin < k) {
        a.copy(chunk_a(write), k - begin);
        b.copy(chunk_b(write), k - begin);
      }
      commit_copies();
      write = next_slot(write);
      if (begin < kBehind) continue;
      wait_copies<kStages - 1>();
      warp_barrier();
      multiply_chunk(acc, read, k - (begin - kBehind));
      read = next_slot(read);
      warp_barrier();  // the chunk has been read: the next one, or C, may take its place
    }
  }

  GEMM_DEVICE float4 quad(const float (&acc)[kRows][kColumns], int i, int j, float alpha) const {
    return make_float4(alpha * acc[i][j], alpha * acc[i + 1][j], alpha * acc[i + 2][j], alpha * acc[i + 3][j]);
  }

  // Straight from registers, four rows at once.
  GEMM_DEVICE void store_direct(const float (&acc)[kRows][kColumns], const Out& out, float alpha) const {
    GEMM_UNROLL
    for (int j = 0; j < kColumns; ++j) {
      GEMM_UNROLL
      for (int i = 0; i < kRows; i += kAdjacent)
        store_four(out, FragmentA::row(lane_m, i), FragmentB::row(lane_n, j), quad(acc, i, j, alpha));
    }
  }

  GEMM_DEVICE void stage_result(const float (&acc)[kRows][kColumns], float alpha) const {
    GEMM_UNROLL
    for (int j = 0; j < kColumns; ++j) {
      GEMM_UNROLL
      for (int i = 0; i < kRows; i += kAdjacent) {
        float* p = shared + FragmentB::row(lane_n, j) * kColumnFloats + FragmentA::row(lane_m, i);
        if constexpr (kAdjacent == 4)
          *reinterpret_cast<float4*>(p) = quad(acc, i, j, alpha);
        else
          *p = alpha * acc[i][j];
      }
    }
  }

  GEMM_DEVICE void store_staged(const Out& out) const {
    if (out.wide) {
      GEMM_UNROLL
      for (int q = lane; q < BM * BN / 4; q += 32) {
        const int row = q % (BM / 4) * 4, column = q / (BM / 4);
        store_four(out, row, column, *reinterpret_cast<const float4*>(shared + column * kColumnFloats + row));
      }
      return;
    }
    GEMM_UNROLL
    for (int e = lane; e < BM * BN; e += 32) store_one(out, e % BM, e / BM, shared[e / BM * kColumnFloats + e % BM]);
  }

  GEMM_DEVICE void store(const float (&acc)[kRows][kColumns], const Out& out, float alpha) const {
    if constexpr (kAdjacent == 4) {
      if (out.wide) {
        store_direct(acc, out, alpha);
        return;
      }
    }
    stage_result(acc, alpha);
    warp_barrier();
    store_staged(out);
  }
};

template <KernelVariant V>
GEMM_DEVICE void batch(const TileArgs& args) {
  if (only_scales<V>(args)) return;
  const unsigned warp = threadIdx.x / 32;
  const unsigned matrix = blockIdx.x * matrices_per_block(V.config) + warp;
  if (matrix >= static_cast<unsigned>(args.batch)) return;
  if constexpr (may_be_unaligned(V)) {
    if (!is_aligned<V>(args, matrix)) {
      batch<with_single_floats(V)>(args);
      return;
    }
  }

  const int lane = static_cast<int>(threadIdx.x % 32);
  const long long index = matrix;
  BatchProduct<V> product;
  product.init(static_cast<int>(warp), lane);
  BatchOperand<V, true> a;
  BatchOperand<V, false> b;
  a.init(matrix_a<V>(args, index), args.lda, args.m, lane);
  b.init(matrix_b<V>(args, index), args.ldb, args.n, lane);
  float acc[BatchProduct<V>::kRows][BatchProduct<V>::kColumns];
  product.run(acc, a, b, args.k);
  product.store(acc, output_of<V>(args, index), alpha_of<V>(args));
}

}  // namespace gemm
