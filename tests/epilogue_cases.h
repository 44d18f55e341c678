// What kernels with an epilogue must get right: each way to end a tile, with C written in quads and in single floats.
//
// All operands allow loads of 16 bytes, or all of them only of 4, which are the variants that the emulator has.
#pragma once

#include <vector>

#include "tile_kernel_cases.h"

namespace gemm::test {

// Leading dimensions and strides for 16-byte loads of A and B; that of C has `gap_c` more than m, rounded up to 4.
inline Problem aligned_problem(int64_t m, int64_t n, int64_t k, Op op_a, Op op_b, int64_t batch = 1, int64_t gap_c = 0) {
  Problem p = packed_problem(m, n, k, op_a, op_b, batch);
  const auto rounded = [](int64_t rows) { return (rows + 3) / 4 * 4; };
  p.lda = rounded(p.rows_a()), p.ldb = rounded(p.rows_b()), p.ldc = rounded(m) + gap_c;
  p.stride_a = p.lda * p.columns_a(), p.stride_b = p.ldb * p.columns_b(), p.stride_c = p.ldc * n;
  return p;
}

// The same product on operands that allow single floats only.
inline ProductCase in_single_floats(ProductCase c) {
  c.offset_a = c.offset_b = c.offset_c = 1;
  return c;
}

// One way to end a tile: whole quads and edges of C, odd numbers of rows, beta 0 over NaN and others, batches.
inline std::vector<ProductCase> epilogue_cases(const Choice& choice, Op op_a, Op op_b, Epilogue epilogue) {
  const KernelConfig& c = choice.config;
  const bool one_tile = c.family == Family::batch;
  const int64_t m = one_tile ? c.BM - 4 : c.BM + 4, n = one_tile ? c.BN - 1 : c.BN + 1;
  const int64_t k = choice.split_k > 1 || choice.reduction == Reduction::stream_k ? 5 * c.BK + 4 : 2 * c.BK + 4;
  const auto with = [&](const Problem& p, float alpha, float beta, bool shared_bias = false) {
    ProductCase one{choice, p, alpha, beta};
    one.epilogue = epilogue;
    one.shared_bias = shared_bias;
    return one;
  };
  const Problem whole = aligned_problem(one_tile ? c.BM : 2 * c.BM, c.BN, k, op_a, op_b, 2);
  const Problem odd = padded(packed_problem(m + 1, n, k + 1, op_a, op_b, 3), 1, 1, 1);
  std::vector<ProductCase> cases = {with(aligned_problem(m, n, k, op_a, op_b), 1, 0),
                                    with(aligned_problem(m, n, k, op_a, op_b, 2, 4), -0.5f, 2),
                                    with(whole, 1, 0, true),
                                    in_single_floats(with(whole, 1, 0, true)),
                                    in_single_floats(with(odd, 1, 0)),
                                    in_single_floats(with(odd, 2, -1, true))};
  // Where rows are not contiguous, their number does not matter to the loads: quads of C that the last row cuts.
  if (op_a == Op::T) {
    cases.push_back(with(aligned_problem(m + 3, n, k, op_a, op_b), 1, 0));
    cases.push_back(with(aligned_problem(m + 1, n, k, op_a, op_b, 2), 1, 1));
  }
  return cases;
}

}  // namespace gemm::test
