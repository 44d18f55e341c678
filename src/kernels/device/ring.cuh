// The ring of stages that the tensor copy engine fills: two mbarriers for each stage, and the copies of whole boxes.
//
//   shared memory:  | A0 | B0 | A1 | B1 | ... | (slices) | zeros (16 bytes) | full[stages] | empty[stages] | spare, flag |
//
// full[s] ends a phase when stage s has arrived, empty[s] when every computing warp has read it.
#pragma once

#include "kernels/device/platform.cuh"

namespace gemm {

template <KernelVariant V>
struct Ring {
  static constexpr int kStages = V.config.stages;
  static constexpr int kStageBytes = stage_floats(V) * 4;
  static constexpr int kBOffset = layout_a(V).floats * 4;  // of B in a stage
  static constexpr int kFull = trailer_offset(V) + 16, kEmpty = kFull + 8 * kStages;
  static constexpr int kSpare = kEmpty + 8 * kStages;  // an empty barrier that nobody waits for
  static constexpr int kFlag = kSpare + 8;             // ticket flag of persistent blocks, whose zeros stay in use

  // By one thread; a block barrier has to follow.
  GEMM_DEVICE static void init(SharedPointer shared, int full_arrivals, int computing_warps) {
    for (int s = 0; s < kStages; ++s) {
      barrier_init(shared + kFull + 8 * s, full_arrivals);
      barrier_init(shared + kEmpty + 8 * s, computing_warps);
    }
    barrier_init(shared + kSpare, computing_warps);
    barrier_init_fence();
  }
};

// Piece p (four floats) of row r of a swizzled span lies at p ^ swizzle_pattern(r); tma_tile.cuh draws it.
template <int Span>
GEMM_DEVICE constexpr int swizzle_pattern(int row) {
  return Span == 32 ? row & 7 : row >> 1 & 3;
}

// Copies of one operand by the tensor copy engine.
template <KernelVariant V, bool IsA>
struct BoxOperand {
  static constexpr OperandLayout kLayout = IsA ? layout_a(V) : layout_b(V);
  static constexpr int kSpan = swizzle_span(V.config);
  static constexpr int kBytes = kLayout.rows * V.config.BK * 4;

  // One stage from row and k on, as [BK][rows] or, along k, as [BK/span][rows][span]. By one thread.
  GEMM_DEVICE static void copy(SharedPointer stage, const TensorMap& map, int row, int k, int batch, SharedPointer full) {
    if constexpr (kLayout.k_contiguous) {
      GEMM_UNROLL
      for (int i = 0; i < V.config.BK / kSpan; ++i)
        copy_box(stage + i * kLayout.rows * kSpan * 4, map, k + i * kSpan, row, batch, full);
    } else {
      copy_box(stage, map, row, k, batch, full);
    }
  }
};

}  // namespace gemm
