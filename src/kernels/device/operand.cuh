// From global memory to one stage of shared memory: the copies of one operand.
//
// An operand is a matrix of ROWS rows (of C's tile: m for A, n for B) by BK of k. In global memory either the rows or k are
// contiguous; in shared memory a stage is [BK][ld] with rows fast, or, for LoadPath::async and k contiguous, [ROWS][ld] with
// k fast:
//
//     rows fast            k fast
//     k0: r0 r1 r2 ..|pad  r0: k0 k1 .. |pad
//     k1: r0 r1 r2 ..|pad  r1: k0 k1 .. |pad
//
// Every thread makes the same `kCopies` copies of `Vec` floats in every stage. Offsets inside the tile are computed once;
// only the base pointer, the same for all threads, moves. In place of rows beyond the matrix others are read again: they
// feed only results that are never stored. They are spread over the tile's rows, because every block that computes these
// rows reads them too, and a single line of L2 cannot serve them all (40x8648x48 TT took 25 us for 8 predicted). Beyond the
// end of k zeros are filled in, selected and not multiplied, so that NaN cannot leak in.
//
// Every cp.async moves all its floats or none: it could be cut short, but compute-sanitizer counts a cut one in full. So
// where rows are contiguous, Vec divides their number (variant_for sees to it); where k is, a cut piece occurs in the tail
// of k only.
//
// The tail of k comes first: stage 0 holds the last BK block with its mask, stage t > 0 the block t - 1. So only the first
// stage pays for the mask, and 16-byte copies stay aligned.
#pragma once

#include "kernels/device/platform.cuh"

namespace gemm {

template <KernelVariant V, bool IsA>
struct Operand {
  static constexpr KernelConfig kConfig = V.config;
  static constexpr OperandLayout kLayout = IsA ? layout_a(V) : layout_b(V);
  static constexpr int kThreads = kConfig.threads();
  static constexpr int kRows = kLayout.rows, kDepth = kConfig.BK, kLd = kLayout.ld;
  static constexpr bool kAlongK = kLayout.k_contiguous;
  static constexpr bool kTransposes = kAlongK && !kLayout.k_fast;
  static constexpr bool kStaged = kConfig.load == LoadPath::register_staged;
  static constexpr int kGlobalVec = IsA ? V.vec_a : V.vec_b;
  // A transposing cp.async moves single floats; staged loads may be wide, since their stores are separate.
  static constexpr int kVec = kTransposes && !kStaged ? 1 : kGlobalVec;
  static constexpr int kPerLine = (kAlongK ? kDepth : kRows) / kVec;  // copies of one contiguous line
  static constexpr int kTotal = (kAlongK ? kRows : kDepth) * kPerLine;
  static constexpr int kCopies = (kTotal + kThreads - 1) / kThreads;
  static constexpr bool kEven = kTotal % kThreads == 0;
  // Of 16-byte copies (narrower ones always do) those of the tile's narrower operand go through L1. In a tile that suits its
  // problem that is the one that may be so small that every block asks for the same few lines, and L2 seems to serve 64
  // bytes of one line only every 1 to 3 ns: 300000x24x24 NN with tiles of 32x32x8 took 138 us, and 24 through L1. The wider
  // one, read once, would only drive it out of L1 (512x512x512 NN with 64x8x64: 14.2 us instead of 12.2). Of equals both do,
  // unless stages are deep: those are for long k (64x64x32: 4 % slower).
  static constexpr int kOtherRows = IsA ? kConfig.BN : kConfig.BM;
  static constexpr bool kThroughL1 = kRows < kOtherRows || (kRows == kOtherRows && kDepth <= 16);
  using Offset = LongOffset<V.long_ld>;

  Offset offset[kCopies];  // bytes from the base of a stage's block
  const char* base;        // the block that the next stage reads
  const char* first;       // block 0
  long long step;          // bytes from one block to the next

  // Line and position of copy i of this thread. Written so that, where threads are a multiple of a line's copies, the
  // position is the same for all i and the line grows by a constant.
  GEMM_DEVICE static int line(int i) {
    if constexpr (kThreads % kPerLine == 0) return static_cast<int>(threadIdx.x) / kPerLine + i * (kThreads / kPerLine);
    return (static_cast<int>(threadIdx.x) + i * kThreads) / kPerLine;
  }
  GEMM_DEVICE static int position(int i) {
    if constexpr (kThreads % kPerLine == 0) return static_cast<int>(threadIdx.x) % kPerLine * kVec;
    return (static_cast<int>(threadIdx.x) + i * kThreads) % kPerLine * kVec;
  }
  GEMM_DEVICE static bool exists(int i) { return kEven || static_cast<int>(threadIdx.x) + i * kThreads < kTotal; }
  GEMM_DEVICE static int k_of(int i) { return kAlongK ? position(i) : line(i); }
  GEMM_DEVICE static int row_of(int i) { return kAlongK ? line(i) : position(i); }
  // Where copy i goes in a stage; element e of a transposing copy is e lines further.
  GEMM_DEVICE static int shared_offset(int i) {
    return kLayout.k_fast ? row_of(i) * kLd + k_of(i) : k_of(i) * kLd + row_of(i);
  }

  // `matrix` points at the tile's first row and the block's first k; `rows` >= 1 rows and `depth` >= 1 of k are inside.
  GEMM_DEVICE void init(const float* matrix, long long ld, int rows, int depth) {
    const int last_block = (depth - 1) / kDepth;
    step = (kAlongK ? kDepth : kDepth * ld) * 4;
    first = reinterpret_cast<const char*>(matrix);
    base = first + last_block * step;
    const int again = power_of_two_within(rows) - 1;  // these bits of a row's number are those of a row inside
    GEMM_UNROLL
    for (int i = 0; i < kCopies; ++i) {
      const int row = row_of(i) < rows ? row_of(i) : row_of(i) & again;
      const auto line = static_cast<Offset>(kAlongK ? row : k_of(i)), place = static_cast<Offset>(kAlongK ? k_of(i) : row);
      offset[i] = (line * static_cast<Offset>(ld) + place) * 4;
    }
  }

  // Floats of copy i inside the matrix when `depth` of k are left; below 1 or above kVec where it is all out or all in.
  GEMM_DEVICE int remaining(int i, int depth) const {
    if constexpr (kAlongK)
      return depth - k_of(i);
    else
      return k_of(i) < depth ? kVec : 0;
  }

  GEMM_DEVICE void advance() { base += step; }

  // cp.async copies of the next stage, where `on`.
  GEMM_DEVICE void copy(float* stage, bool on) {
    GEMM_UNROLL
    for (int i = 0; i < kCopies; ++i)
      copy_async<kVec, kThroughL1>(stage + shared_offset(i), base, offset[i], on && exists(i));
    advance();
  }

  // cp.async copies of stage 0, the tail of k with `depth` (1 … BK) left.
  GEMM_DEVICE void copy_tail(float* stage, int depth) {
    GEMM_UNROLL
    for (int i = 0; i < kCopies; ++i) {
      float* to = stage + shared_offset(i);
      const int count = exists(i) ? remaining(i, depth) : 0;
      if (kVec == 1 || count <= 0 || count >= kVec) {
        copy_async_or_zero<kVec, kThroughL1>(to, base, offset[i], count > 0, exists(i));
      } else {
        GEMM_UNROLL
        for (int e = 0; e < kVec; ++e) copy_async_or_zero<1>(to + e, base, offset[i] + 4 * e, e < count, true);
      }
    }
    base = first;
  }

  // Register staging: fetch() loads a stage into registers, store() puts it into shared memory.
  struct Staged {
    float value[kCopies][kVec];
  };

  // Compares `count` as it is: clamped to kVec first, ptxas 13.0 folds the comparison with kVec into its minimum instruction
  // with the wrong sense, and a cut piece is read whole (GPU test GpuTileKernel.EdgesOfAllOpPairs).
  GEMM_DEVICE void fetch(Staged& staged, int depth) {
    GEMM_UNROLL
    for (int i = 0; i < kCopies; ++i) {
      const int count = exists(i) ? remaining(i, depth) : 0;
      const float* source = reinterpret_cast<const float*>(base + offset[i]);
      if constexpr (kVec == 4) {
        if (count >= 4) {
          const float4 v = *reinterpret_cast<const float4*>(source);
          staged.value[i][0] = v.x, staged.value[i][1] = v.y, staged.value[i][2] = v.z, staged.value[i][3] = v.w;
          continue;
        }
      }
      GEMM_UNROLL
      for (int e = 0; e < kVec; ++e) staged.value[i][e] = e < count ? source[e] : 0.0f;
    }
  }

  GEMM_DEVICE void store(const Staged& staged, float* stage) const {
    GEMM_UNROLL
    for (int i = 0; i < kCopies; ++i) {
      if (!exists(i)) continue;
      GEMM_UNROLL
      for (int e = 0; e < kVec; ++e) stage[shared_offset(i) + e * (kTransposes ? kLd : 1)] = staged.value[i][e];
    }
  }
};

}  // namespace gemm
