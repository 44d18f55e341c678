// Fragments of the computing warps of LoadPath::warp_specialized, read ahead of the FMAs that need them.
//
//   two fragments of each operand (up to 144 results a thread):
//       load step k  |  FMAs of step k-1  |  load step k+1  |  FMAs of step k  | ...
//
//   in place (fragments_in_place: 192 results leave 48 registers):
//       the operand that repeats, the inner one of the FMA order, has two fragments; the other one has one, and a quad of
//       its next step is loaded into the registers of the quad whose FMAs have just been issued
//           FMAs of rows 0..3 | load rows 0..3 of the next step | FMAs of rows 4..7 | load rows 4..7 | ...
#pragma once

#include "kernels/device/fragment.cuh"
#include "kernels/device/ring.cuh"

namespace gemm {

// A thread's fragments of an operand with rows fast.
template <int Count, int T, int Lanes, OperandLayout Layout, int Fragments>
struct StepsAhead {
  float value[Fragments][Count];
  SharedPointer at;  // its first row and k in the stage

  GEMM_DEVICE void init(SharedPointer operand, int first_row, int lane, int first_k) {
    at = operand + (first_k * Layout.ld + first_row + lane * T) * 4;
  }
  GEMM_DEVICE void move(int bytes) { at += bytes; }
  GEMM_DEVICE void load_four(int i, int k) {
    float(&to)[Count] = value[k % Fragments];
    load_quad(at + (k * Layout.ld + i / T * Lanes * T + i % T) * 4, to[i], to[i + 1], to[i + 2], to[i + 3]);
  }
  GEMM_DEVICE void load(int k) {
    GEMM_UNROLL
    for (int i = 0; i < Count; i += 4) load_four(i, k);
  }
  GEMM_DEVICE const float (&step(int k) const)[Count] { return value[k % Fragments]; }
  GEMM_DEVICE float (&last())[Count] { return value[Fragments - 1]; }
};

// And of one with k fast, swizzled, two steps at once. The lane owns every Lanes-th row, so its rows are swizzled by its own
// pattern xor a constant: one address for each piece of a span is enough, and the loop computes none.
template <int Count, int Lanes, OperandLayout Layout>
struct PairsAhead {
  static constexpr int kSpan = Layout.ld, kPieces = kSpan / 4;

  float value[2][2][Count];
  SharedPointer at[kPieces];

  GEMM_DEVICE void init(SharedPointer operand, int first_row, int lane, int first_k) {
    const int row = first_row + lane, piece = first_k / 4;
    GEMM_UNROLL
    for (int p = 0; p < kPieces; ++p)
      at[p] = operand + (piece / kPieces * Layout.rows * kSpan + row * kSpan +
                         ((piece % kPieces ^ swizzle_pattern<kSpan>(lane) ^ p) * 4)) *
                            4;
  }
  GEMM_DEVICE void move(int bytes) {
    GEMM_UNROLL
    for (int p = 0; p < kPieces; ++p) at[p] += bytes;
  }
  GEMM_DEVICE void load(int k) {
    if (k % 2 != 0) return;
    float(&to)[2][Count] = value[k / 2 & 1];
    GEMM_UNROLL
    for (int i = 0; i < Count; ++i)
      load_pair(at[k / 4 % kPieces ^ swizzle_pattern<kSpan>(i * Lanes)] +
                    (k / kSpan * Layout.rows * kSpan + i * Lanes * kSpan + k % 4) * 4,
                to[0][i], to[1][i]);
  }
  GEMM_DEVICE const float (&step(int k) const)[Count] { return value[k / 2 & 1][k % 2]; }
  GEMM_DEVICE float (&last())[Count] { return value[1][1]; }
};

// `Repeats`: of the operands in place, the one that has two fragments.
template <int Count, int T, int Lanes, OperandLayout Layout, bool InPlace, bool Repeats>
struct AheadOfFmas {
  using type = StepsAhead<Count, T, Lanes, Layout, InPlace && !Repeats ? 1 : 2>;
};
template <int Count, int T, int Lanes, OperandLayout Layout, bool Repeats>
requires(Layout.k_fast) struct AheadOfFmas<Count, T, Lanes, Layout, false, Repeats> {
  using type = PairsAhead<Count, Lanes, Layout>;
};

// acc += the product of step `before`, while step k is loaded: in place.
template <FmaOrder Order, int Rows, int Columns, class A, class B>
GEMM_DEVICE void multiply_while_loading(float (&acc)[Rows][Columns], A& a, B& b, int before, int k) {
  constexpr int kOuter = Order == FmaOrder::rows ? Rows : Columns, kInner = Order == FmaOrder::rows ? Columns : Rows;
  GEMM_UNROLL
  for (int line = 0; line < kOuter; ++line) {
    if constexpr (Order == FmaOrder::rows) {
      if (line < kInner / 4) b.load_four(line * 4, k);
      multiply_line<Order>(acc, a.step(before), b.step(before), line);
      if (line % 4 == 3) a.load_four(line - 3, k);
    } else {
      if (line < kInner / 4) a.load_four(line * 4, k);
      multiply_line<Order>(acc, a.step(before), b.step(before), line);
      if (line % 4 == 3) b.load_four(line - 3, k);
    }
  }
}

}  // namespace gemm
