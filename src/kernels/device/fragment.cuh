// From shared memory to registers, and the multiply-adds of one step of k.
#pragma once

#include "kernels/device/platform.cuh"

namespace gemm {

// Lane -> (lane along m, lane along n). A 16-byte shared-memory load takes 2 passes instead of 4 when every lane has a
// neighbour (lane^1 or lane^2) that reads the same address; so the direction with fewer lanes takes the bits from 1 on, the
// other one bit 0 and the rest.
template <int LanesM>
GEMM_DEVICE void lane_position(int lane, int& lane_m, int& lane_n) {
  constexpr int kLanesN = 32 / LanesM;
  constexpr int kFew = LanesM < kLanesN ? LanesM : kLanesN;
  if constexpr (kFew == 1) {
    lane_m = LanesM == 1 ? 0 : lane;
    lane_n = LanesM == 1 ? lane : 0;
  } else {
    const int few = (lane >> 1) % kFew;
    const int many = (lane & 1) | ((lane >> 1) / kFew << 1);
    lane_m = LanesM < kLanesN ? few : many;
    lane_n = LanesM < kLanesN ? many : few;
  }
}

// The rows of a warp tile that one lane owns, and their values for `kSteps` steps of k.
//   rows fast: Iterations sub-tiles, in each T adjacent rows; read along the rows, one step of k at a time
//   k fast:    every Lanes-th row (neighbouring lanes read neighbouring rows: no bank conflict); read along k, four steps at
//   once
template <int Iterations, int T, int Lanes, bool KFast, int Ld>
struct Fragment {
  static constexpr int kCount = Iterations * T;
  static constexpr int kAdjacent = KFast ? 1 : T;  // rows next to each other that one lane owns

  GEMM_DEVICE static int row(int lane, int i) { return KFast ? i * Lanes + lane : i / T * (Lanes * T) + lane * T + i % T; }

  // value[s][i] = operand(row i, k + s) for s < Steps; `warp` points at the warp's first row in a stage.
  template <int Steps>
  GEMM_DEVICE static void load(float (&value)[Steps][kCount], const float* warp, int lane, int k) {
    if constexpr (KFast) {
      static_assert(Steps == 4);
      GEMM_UNROLL
      for (int i = 0; i < kCount; ++i) {
        const float4 v = *reinterpret_cast<const float4*>(warp + row(lane, i) * Ld + k);
        value[0][i] = v.x, value[1][i] = v.y, value[2][i] = v.z, value[3][i] = v.w;
      }
    } else {
      GEMM_UNROLL
      for (int s = 0; s < Steps; ++s) load_rows(value[s], warp + (k + s) * Ld, lane);
    }
  }

  GEMM_DEVICE static void load_rows(float (&value)[kCount], const float* line, int lane) {
    constexpr int kVec = T % 4 == 0 ? 4 : T;
    GEMM_UNROLL
    for (int i = 0; i < kCount; i += kVec) {
      const float* p = line + row(lane, i);
      if constexpr (kVec == 4) {
        const float4 v = *reinterpret_cast<const float4*>(p);
        value[i] = v.x, value[i + 1] = v.y, value[i + 2] = v.z, value[i + 3] = v.w;
      } else if constexpr (kVec == 2) {
        const float2 v = *reinterpret_cast<const float2*>(p);
        value[i] = v.x, value[i + 1] = v.y;
      } else {
        value[i] = *p;
      }
    }
  }
};

// acc += a * b for one step of k in one row, or one column, of results: every second one backwards, so that the operand
// register between two of them stays in the reuse cache.
template <FmaOrder Order, int Rows, int Columns>
GEMM_DEVICE void multiply_line(float (&acc)[Rows][Columns], const float (&a)[Rows], const float (&b)[Columns], int line) {
  constexpr int kLength = Order == FmaOrder::rows ? Columns : Rows;
  GEMM_UNROLL
  for (int step = 0; step < kLength; ++step) {
    const int at = line & 1 ? kLength - 1 - step : step;
    const int i = Order == FmaOrder::rows ? line : at, j = Order == FmaOrder::rows ? at : line;
    acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
  }
}

// In all of them.
template <FmaOrder Order, int Rows, int Columns>
GEMM_DEVICE void multiply(float (&acc)[Rows][Columns], const float (&a)[Rows], const float (&b)[Columns]) {
  GEMM_UNROLL
  for (int line = 0; line < (Order == FmaOrder::rows ? Rows : Columns); ++line) multiply_line<Order>(acc, a, b, line);
}

// Zeroes the accumulators. `shifted` loads them as quads along the FMA order, moved by one element: ptxas then keeps each
// accumulator in the register bank that the operand streaming past it is not in. `zeros` are 16 bytes of shared memory.
template <AccInit Init, FmaOrder Order, int Rows, int Columns>
GEMM_DEVICE void zero(float (&acc)[Rows][Columns], const float* zeros) {
  if constexpr (Init == AccInit::plain) {
    GEMM_UNROLL
    for (int i = 0; i < Rows; ++i) {
      GEMM_UNROLL
      for (int j = 0; j < Columns; ++j) acc[i][j] = 0.0f;
    }
  } else if constexpr (Order == FmaOrder::rows) {
    GEMM_UNROLL
    for (int i = 0; i < Rows; ++i) {
      GEMM_UNROLL
      for (int j = 0; j < Columns; j += 4)
        load_shared_fixed(zeros, acc[i][(j + 1) % Columns], acc[i][(j + 2) % Columns], acc[i][(j + 3) % Columns],
                          acc[i][(j + 4) % Columns]);
    }
  } else {
    GEMM_UNROLL
    for (int j = 0; j < Columns; ++j) {
      GEMM_UNROLL
      for (int i = 0; i < Rows; i += 4)
        load_shared_fixed(zeros, acc[(i + 1) % Rows][j], acc[(i + 2) % Rows][j], acc[(i + 3) % Rows][j],
                          acc[(i + 4) % Rows][j]);
    }
  }
}

}  // namespace gemm
