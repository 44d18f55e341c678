// Cases and check of the ladder kernels, for the emulator and for a GPU.
#pragma once

#include <vector>

#include "kernels/ladder.h"
#include "product_check.h"

namespace gemm::test {

// Sizes around the tiles (32, 64, 128) and slabs (8, 32), tails of k, padded ld, moved pointers, alpha and beta.
inline std::vector<ProductCase> ladder_cases() {
  std::vector<ProductCase> cases;
  const auto add = [&](int64_t m, int64_t n, int64_t k, float alpha, float beta, int64_t pad, int offset) {
    Problem p = packed_problem(m, n, k);
    p.lda += pad, p.ldb += pad, p.ldc += pad;
    cases.push_back({{}, p, alpha, beta, offset, offset, offset});
  };
  add(1, 1, 1, 1, 0, 0, 0);
  add(1, 1, 9, 1, 1.5f, 0, 0);
  add(128, 128, 32, 1, 0, 0, 0);
  add(7, 7, 7, 1, 0, 57, 0);
  add(33, 31, 17, -0.5f, 2, 3, 0);
  add(65, 63, 9, 0.75f, -1, 1, 1);
  add(129, 130, 12, 1, 0, 3, 0);
  add(132, 131, 20, 1, 1, 4, 0);
  add(36, 36, 40, 1, 0.5f, 0, 2);
  add(5, 3, 0, 1, 0, 0, 0);
  return cases;
}

// Runs one rung into a poisoned C. Returns why it is wrong, or an empty string.
inline std::string check_rung(Device& device, const LadderRung& rung, const ProductCase& c) {
  const Problem& p = c.problem;
  const HostMatrix a = random_matrix(p.m, p.k, p.lda, 0, 1, p.extent_a(), false, 1);
  const HostMatrix b = random_matrix(p.k, p.n, p.ldb, 0, 1, p.extent_b(), false, 2);
  HostMatrix before = random_matrix(p.m, p.n, p.ldc, 0, 1, p.extent_c(), false, 3);
  if (c.beta == 0) std::fill(before.data.begin(), before.data.end(), std::numeric_limits<float>::quiet_NaN());
  const Buffer device_a = upload(device, a, c.offset_a), device_b = upload(device, b, c.offset_b),
               device_c = upload(device, before, c.offset_c);
  const Operands operands{device_a.as<float>() + c.offset_a, device_b.as<float>() + c.offset_b,
                          device_c.as<float>() + c.offset_c, c.alpha, c.beta};
  const Result<std::shared_ptr<Kernel>> kernel = device.build(ladder_spec(rung));
  if (!kernel) return kernel.error();
  const Result<bool> launched = launch_ladder(device, **kernel, rung, p, operands, nullptr);
  if (!launched) return launched.error();
  device.synchronize(nullptr);
  HostMatrix after = before;
  device.copy_to_host(after.data.data(), operands.c, after.data.size() * sizeof(float));
  return why_wrong(c, a, b, before, after);
}

}  // namespace gemm::test
