// Products on copies of their operands, for the emulated and the GPU tests.
#pragma once

#include <vector>

#include "product_check.h"

namespace gemm::test {

inline constexpr Relayout kRelayouts[] = {Relayout::a, Relayout::b, Relayout::ab};

// Sizes around the tiles of the copying kernel and of the product, padded and misaligned operands, scalars, batches with
// gaps and with a shared matrix, splits of k.
inline std::vector<ProductCase> relayout_cases(const KernelConfig& config, Relayout relayout, Op op_a, Op op_b) {
  std::vector<ProductCase> cases;
  const auto add = [&](int64_t m, int64_t n, int64_t k, int64_t pad, int64_t batch, ProductCase scalars) {
    Problem p = packed_problem(m, n, k, op_a, op_b, batch);
    p.lda += pad, p.ldb += pad, p.ldc += pad;
    p.stride_a = p.lda * p.columns_a() + pad;
    p.stride_b = p.ldb * p.columns_b() + pad;
    p.stride_c = p.ldc * n + pad;
    scalars.problem = p;
    scalars.choice.config = config, scalars.choice.relayout = relayout;
    cases.push_back(scalars);
  };
  add(64, 64, 64, 0, 1, {});
  add(65, 63, 66, 1, 1, {.alpha = 0.5f, .beta = -1, .offset_a = 1, .offset_b = 3, .offset_c = 1});
  add(1, 130, 70, 3, 1, {.beta = 1, .offset_a = 2});
  add(129, 1, 5, 0, 1, {.alpha = -2});
  add(33, 37, 129, 5, 3, {.beta = 0.25f, .offset_b = 1});
  cases.push_back(cases.back());
  cases.back().problem.stride_a = 0;
  cases.push_back(cases.back());
  cases.back().problem.stride_b = 0;
  add(70, 40, 200, 1, 1, {.choice = {.split_k = 3, .reduction = Reduction::kernel}, .beta = 1});
  add(70, 40, 200, 1, 1, {.choice = {.split_k = 2, .reduction = Reduction::ticket}});
  if (is_specialized(config.load)) add(200, 150, 90, 1, 1, {.choice = {.reduction = Reduction::stream_k}});
  return cases;
}

}  // namespace gemm::test
