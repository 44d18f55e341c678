// What the policies of a context serve with, and that reproducible results are.
#include <gtest/gtest.h>

#include "scripted_context.h"

namespace gemm::test {
namespace {

TEST(Policies, DecideWhoServes) {
  Scripted scripted;
  force_split(scripted);
  gemm_policy_t policy = GEMM_POLICY_REPRODUCIBLE;
  EXPECT_EQ(gemm_get_policy(scripted.get(), &policy), GEMM_SUCCESS);
  EXPECT_EQ(policy, GEMM_POLICY_AUTO);
  ASSERT_EQ(scripted.multiply(kSplit), GEMM_SUCCESS);
  ASSERT_EQ(gemm_set_policy(scripted.get(), GEMM_POLICY_CUBLAS_ONLY), GEMM_SUCCESS);
  EXPECT_EQ(scripted.multiply(kSplit), GEMM_NOT_SUPPORTED) << "the emulated device has no cuBLAS";
  EXPECT_EQ(scripted.multiply(packed_problem(4, 4, 0)), GEMM_NOT_SUPPORTED);
  ASSERT_EQ(gemm_set_policy(scripted.get(), GEMM_POLICY_TUNED_ONLY), GEMM_SUCCESS);
  EXPECT_EQ(scripted.multiply(kSplit), GEMM_SUCCESS);
  EXPECT_EQ(explanation(scripted.get(), kSplit).find("cuBLAS"), std::string::npos);
  ASSERT_EQ(gemm_set_policy(scripted.get(), GEMM_POLICY_REPRODUCIBLE), GEMM_SUCCESS);
  EXPECT_EQ(scripted.multiply(kSplit), GEMM_SUCCESS);
  EXPECT_EQ(gemm_set_policy(scripted.get(), static_cast<gemm_policy_t>(4)), GEMM_INVALID_ARGUMENT);
  const gemm_statistics_t statistics = scripted.statistics();
  EXPECT_EQ(statistics.exact, 2u);
  EXPECT_EQ(statistics.reproducible, 1u);
  EXPECT_EQ(statistics.cublas + statistics.scaled, 0u);
}

// The bits of a product under the reproducible policy, with packed matrices or others.
std::vector<float> reproducible_bits(const Scripted& scripted, const ApiCase& c) {
  Device& device = *scripted.device;
  const Problem& p = c.problem;
  // The same numbers whatever the leading dimensions.
  const Problem packed = packed_problem(p.m, p.n, p.k, p.op_a, p.op_b, p.batch);
  const auto spread = [](const HostMatrix& from, int64_t rows, int64_t columns, int64_t batch, int64_t ld, int64_t stride) {
    HostMatrix to{std::vector<float>(static_cast<size_t>((batch - 1) * stride + ld * columns), kNan), ld, stride};
    for (int64_t i = 0; i < batch; ++i)
      for (int64_t column = 0; column < columns; ++column)
        for (int64_t row = 0; row < rows; ++row) to.at(row, column, i) = from.at(row, column, i);
    return to;
  };
  const auto random = [&](int64_t rows, int64_t columns, int64_t extent, int64_t ld, int64_t stride, unsigned seed) {
    return random_matrix(rows, columns, ld, stride, p.batch, extent, false, seed);
  };
  const HostMatrix a = spread(random(p.rows_a(), p.columns_a(), packed.extent_a(), packed.lda, packed.stride_a, 1),
                              p.rows_a(), p.columns_a(), p.batch, p.lda, p.stride_a);
  const HostMatrix b = spread(random(p.rows_b(), p.columns_b(), packed.extent_b(), packed.ldb, packed.stride_b, 2),
                              p.rows_b(), p.columns_b(), p.batch, p.ldb, p.stride_b);
  HostMatrix before =
      spread(random(p.m, p.n, packed.extent_c(), packed.ldc, packed.stride_c, 3), p.m, p.n, p.batch, p.ldc, p.stride_c);
  const Buffer device_a = upload(device, a, c.offset_a), device_b = upload(device, b, c.offset_b);
  GuardedC out(device, before, 64, c.offset_c);
  EXPECT_EQ(call(scripted.get(), c, device_a.as<float>() + c.offset_a, device_b.as<float>() + c.offset_b, out.data()),
            GEMM_SUCCESS)
      << gemm_last_error();
  HostMatrix after = before;
  EXPECT_EQ(out.read(after), "");
  std::vector<float> result;
  for (int64_t i = 0; i < p.batch; ++i)
    for (int64_t column = 0; column < p.n; ++column)
      for (int64_t row = 0; row < p.m; ++row) result.push_back(after.at(row, column, i));
  return result;
}

TEST(Policies, ReproducibleResultsDependOnTheNumbersOnly) {
  Scripted plain(true), tuned(true);
  for (const Scripted* scripted : {&plain, &tuned})
    ASSERT_EQ(gemm_set_policy(scripted->get(), GEMM_POLICY_REPRODUCIBLE), GEMM_SUCCESS);
  for (const Problem& p : {packed_problem(33, 30, 1600, Op::T, Op::N), packed_problem(270, 260, 41),
                           packed_problem(20, 24, 70, Op::N, Op::T, 2)}) {
    force(tuned.get(), {emulated_configs()[4], 2, Reduction::ticket}, {p});
    tuned.handle.set_workspace(size_t{3} << 20);
    const std::vector<float> expected = reproducible_bits(plain, {p, 0.7f, 1.3f});
    Problem padded = with_ld(p, p.lda + 3, p.ldb + 5, p.ldc + 1);
    padded = with_strides(padded, padded.lda * p.columns_a() + 1, padded.ldb * p.columns_b(), padded.ldc * p.n + 2);
    ApiCase shifted{p, 0.7f, 1.3f, Inputs::random, kNan, 1, 2, 3};
    for (ApiCase c : {ApiCase{p, 0.7f, 1.3f}, ApiCase{padded, 0.7f, 1.3f}, shifted}) {
      EXPECT_EQ(reproducible_bits(tuned, c), expected) << c;
      c.device_scalars = c.arrays = true;
      EXPECT_EQ(reproducible_bits(tuned, c), expected) << c;
    }
    // Were the bits the same anyway, this test could not fail.
    gemm_set_policy(tuned.get(), GEMM_POLICY_AUTO);
    if (p.k > 1000) {
      EXPECT_NE(reproducible_bits(tuned, {p, 0.7f, 1.3f}), expected);
    }
    gemm_set_policy(tuned.get(), GEMM_POLICY_REPRODUCIBLE);
  }
  plain.handle.set_workspace(0);
  EXPECT_EQ(plain.multiply(packed_problem(33, 30, 1600)), GEMM_NOT_SUPPORTED) << "another split would be another result";
  EXPECT_NE(std::string(gemm_last_error()).find("workspace"), std::string::npos) << gemm_last_error();
}

}  // namespace
}  // namespace gemm::test
