// The cases that every configuration of the batch kernel must pass.
#pragma once

#include <algorithm>
#include <vector>

#include "tile_kernel_cases.h"

namespace gemm::test {

// All sizes from 1 to the largest matrix in turn: m, n and k walk at different speeds, so that every remainder meets every
// other one sooner or later.
inline std::vector<ProductCase> batch_size_cases(const KernelConfig& c, Op op_a, Op op_b) {
  std::vector<ProductCase> cases;
  for (int i = 0; i < std::max(c.BM, c.BN); ++i) {
    const Problem p = packed_problem(1 + i % c.BM, 1 + i * 5 % c.BN, 1 + i * 7 % (3 * c.BK), op_a, op_b, 3);
    cases.push_back({{c}, p, 1, 0});
    cases.push_back({{c}, padded(p, i % 4, (i + 1) % 4, (i + 2) % 4), -0.5f, 2});
  }
  return cases;
}

// The largest matrix and one row and column less, tails of k, padded leading dimensions, moved pointers, alpha and beta.
inline std::vector<ProductCase> batch_edge_cases(const KernelConfig& c, Op op_a, Op op_b) {
  std::vector<ProductCase> cases;
  const auto add = [&](Problem p, float alpha = 1, float beta = 0) { cases.push_back({{c}, p, alpha, beta}); };
  for (int k : {1, c.BK - 1, c.BK, c.BK + 1, 2 * c.BK, 3 * c.BK + 2, 5 * c.BK}) {
    add(packed_problem(c.BM, c.BN, k, op_a, op_b, 17));
    add(packed_problem(c.BM - 1, c.BN - 1, k, op_a, op_b, 3), 0.75f, -1);
    // Wide loads whose last piece is cut by k: leading dimensions and strides are multiples of 4, k is not.
    Problem wide = packed_problem(c.BM - 4, c.BN - 4, k, op_a, op_b, 5);
    wide.lda = (wide.lda + 7) / 4 * 4, wide.ldb = (wide.ldb + 7) / 4 * 4, wide.ldc += 4;
    wide.stride_a = wide.lda * wide.columns_a() + 4, wide.stride_b = wide.ldb * wide.columns_b() + 4;
    wide.stride_c = wide.ldc * wide.n + 8;
    add(wide, 1, 1.5f);
  }
  ProductCase moved{{c}, packed_problem(c.BM, c.BN, c.BK, op_a, op_b, 5), 1, 0.5f, 1, 3, 1};
  cases.push_back(moved);
  moved.offset_a = 2, moved.offset_b = 0, moved.offset_c = 2;
  cases.push_back(moved);
  moved.offset_a = 0, moved.offset_b = 2, moved.offset_c = 0;
  cases.push_back(moved);
  return cases;
}

// Batches that fill the last block and that do not, and operands that the whole batch shares.
inline std::vector<ProductCase> batch_count_cases(const KernelConfig& c) {
  std::vector<ProductCase> cases;
  for (int batch : {1, 3, 17, 100}) {
    Problem p = packed_problem(c.BM, c.BN, c.BK + 3, Op::N, Op::N, batch);
    cases.push_back({{c}, p, 1, 0});
    p.stride_a = 0;
    cases.push_back({{c}, p, 2, 1});
    p.stride_b = 0;
    cases.push_back({{c}, p, 1, 0});
    cases.push_back({{c}, padded(packed_problem(5, 7, c.BK, Op::T, Op::T, batch), 1, 2, 3), 1, 0.5f});
  }
  return cases;
}

// All ones: every result is exactly k.
inline std::vector<ProductCase> batch_tail_cases(const KernelConfig& c) {
  std::vector<ProductCase> cases;
  for (int64_t k : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 33, 47, 48, 49, 65, 100, 257})
    for (Op op_a : kOps)
      for (Op op_b : kOps) {
        ProductCase one{{c}, packed_problem(8, 8, k, op_a, op_b, 4), 1, 0};
        one.ones = true;
        cases.push_back(one);
      }
  return cases;
}

// A small selection for the sanitizer builds.
inline std::vector<ProductCase> batch_sanitizer_cases(const KernelConfig& c, Op op_a, Op op_b) {
  return {{{c}, padded(packed_problem(c.BM - 1, c.BN - 1, 4 * c.BK + 1, op_a, op_b, 5), 3, 1, 3), 1, 0.5f},
          {{c}, packed_problem(c.BM, c.BN, c.BK, op_a, op_b, 3), 1, 0}};
}

}  // namespace gemm::test
