// The cases that every configuration of the tile and stream families must pass: docs/design.md, "Testing", says where each
// kind comes from.
#pragma once

#include <utility>
#include <vector>

#include "product_check.h"

namespace gemm::test {

inline constexpr Op kOps[] = {Op::N, Op::T};
// Rows contiguous in both operands, and k in both: each kernel's ways to load A and B, in half the time of all op pairs.
inline constexpr std::pair<Op, Op> kBothLayouts[] = {{Op::N, Op::T}, {Op::T, Op::N}};

inline Problem padded(Problem p, int64_t pad_a, int64_t pad_b, int64_t pad_c) {
  p.lda += pad_a, p.ldb += pad_b, p.ldc += pad_c;
  p.stride_a = p.lda * p.columns_a() + pad_a;
  p.stride_b = p.ldb * p.columns_b() + pad_b;
  p.stride_c = p.ldc * p.n + pad_c;
  return p;
}

// Sizes around the tile, tails of k, padded leading dimensions, moved pointers, alpha and beta, for one op pair.
inline std::vector<ProductCase> edge_cases(const KernelConfig& c, Op op_a, Op op_b) {
  const Choice choice{c, 1, Reduction::ticket};
  std::vector<ProductCase> cases;
  const auto add = [&](Problem p, float alpha = 1, float beta = 0) { cases.push_back({choice, p, alpha, beta}); };
  add(packed_problem(1, 1, 1, op_a, op_b));
  add(packed_problem(1, 1, 9, op_a, op_b), 1, 1.5f);
  add(padded(packed_problem(7, 7, 7, op_a, op_b), 57, 57, 57));
  add(packed_problem(c.BM, c.BN, 4 * c.BK, op_a, op_b));
  add(packed_problem(c.BM - 1, c.BN - 1, c.BK - 1, op_a, op_b), -0.5f, 2);
  add(padded(packed_problem(c.BM + 1, c.BN + 1, c.BK + 1, op_a, op_b), 3, 5, 3), 0.75f, -1);
  // Wide loads whose last piece is cut: leading dimensions are multiples of 4, sizes are not.
  add(padded(packed_problem(c.BM + 3, c.BN + 2, 3 * c.BK + 2, op_a, op_b), 4 - (op_a == Op::N ? c.BM + 3 : 3 * c.BK + 2) % 4,
             4 - (op_b == Op::N ? 3 * c.BK + 2 : c.BN + 2) % 4, 4 - (c.BM + 3) % 4));
  add(padded(packed_problem(33, 34, 2 * c.BK + 6, op_a, op_b), 3, 2, 1), 1, 1);
  ProductCase moved{choice, packed_problem(36, 36, 40, op_a, op_b), 1, 0.5f, 1, 3, 1};
  cases.push_back(moved);
  moved.offset_a = 2, moved.offset_b = 0, moved.offset_c = 2;
  cases.push_back(moved);
  add(padded(packed_problem(9, 10, 2 * c.BK + 3, op_a, op_b, 3), 1, 2, 3), 1, 1);
  return cases;
}

// Splits of k, added by ticket and by a second kernel, tails that leave the last split short, batches, beta = 0 over NaN.
inline std::vector<ProductCase> split_cases(const KernelConfig& c, Op op_a, Op op_b) {
  std::vector<ProductCase> cases;
  for (Reduction reduction : {Reduction::ticket, Reduction::kernel})
    for (int split : {2, 3, 8}) {
      cases.push_back({{c, split, reduction}, packed_problem(c.BM + 1, c.BN, 8 * c.BK + 1, op_a, op_b), 1, 0});
      cases.push_back({{c, split, reduction}, padded(packed_problem(5, 6, 5 * c.BK, op_a, op_b, 2), 1, 1, 1), 0.5f, -2});
    }
  return cases;
}

// Splits within a cluster: edges, batches, aligned operands (tensor copies), fewer blocks than asked for, and one alone.
inline std::vector<ProductCase> cluster_cases(const KernelConfig& c, Op op_a, Op op_b) {
  std::vector<ProductCase> cases;
  if (!can_cluster(c)) return cases;
  for (int split : {2, 3, 8}) {
    const Choice choice{c, split, Reduction::cluster};
    cases.push_back({choice, packed_problem(c.BM + 1, c.BN, 8 * c.BK + 1, op_a, op_b), 1, 0});
    cases.push_back({choice, padded(packed_problem(5, 6, 5 * c.BK, op_a, op_b, 2), 1, 1, 1), 0.5f, -2});
    cases.push_back({choice, packed_problem(c.BM, c.BN + 4, 9 * c.BK, op_a, op_b), 1, 1});
    cases.push_back({choice, packed_problem(c.BM + 4, 8, c.BK, op_a, op_b), 1, 0});
  }
  return cases;
}

// Stream-k: one tile shared by many blocks, a few tiles, edges, batches, and pieces that end where tiles do.
inline std::vector<ProductCase> stream_k_cases(const KernelConfig& c, Op op_a, Op op_b) {
  std::vector<ProductCase> cases;
  if (!is_specialized(c.load)) return cases;
  const Choice choice{c, 1, Reduction::stream_k};
  cases.push_back({choice, packed_problem(5, 6, 40 * c.BK + 1, op_a, op_b), 1, 0});
  cases.push_back({choice, padded(packed_problem(c.BM + 1, 2 * c.BN + 1, 9 * c.BK + 3, op_a, op_b), 3, 1, 3), 0.5f, -2});
  cases.push_back({choice, packed_problem(c.BM, 2 * c.BN, 8 * c.BK, op_a, op_b, 3), 1, 1});
  return cases;
}

// A small selection for the sanitizer builds, where a run costs a hundred times as much: edges, a tail and a split.
inline std::vector<ProductCase> sanitizer_cases(const KernelConfig& c, Op op_a, Op op_b, bool in_cluster = false) {
  const Problem edges = padded(packed_problem(c.BM + 1, c.BN + 1, 4 * c.BK + 1, op_a, op_b), 3, 1, 3);
  std::vector<ProductCase> cases = {{{c, 1, Reduction::ticket}, edges, 1, 0.5f},
                                    {{c, 3, Reduction::ticket}, packed_problem(8, 8, 5 * c.BK, op_a, op_b), 1, 0}};
  if (is_specialized(c.load)) cases.push_back({{c, 1, Reduction::stream_k}, edges, 1, 0});
  if (in_cluster) cases.push_back({{c, 2, Reduction::cluster}, edges, 1, 0.5f});
  return cases;
}

// All ones: every result is exactly k, whatever the tail, the ring and the split.
inline std::vector<ProductCase> tail_cases(const KernelConfig& c) {
  std::vector<ProductCase> cases;
  for (int64_t k : {1, 3, 8, 9, 15, 17, 31, 33, 63, 65, 97, 127, 129, 200})
    for (int split : {1, 4}) {
      ProductCase one{{c, split, Reduction::ticket}, packed_problem(16, 20, k, Op::N, Op::T), 1, 0};
      one.ones = true;
      cases.push_back(one);
    }
  return cases;
}

}  // namespace gemm::test
