// Every emulated configuration of the batch kernel, for all op pairs.
#include <gtest/gtest.h>

#include "batch_kernel_cases.h"
#include "emulator/emulated_device.h"

namespace gemm {
namespace {

class BatchKernel : public testing::TestWithParam<int> {
 protected:
  KernelConfig config() const { return emulated_batch_configs()[static_cast<size_t>(GetParam())]; }

  void expect_all(const std::vector<test::ProductCase>& cases) { test::expect_right(*device_, cases); }

  std::unique_ptr<Device> device_ = make_emulated_device();
};

TEST_P(BatchKernel, AllSizes) {
  for (Op op_a : test::kOps)
    for (Op op_b : test::kOps) expect_all(test::batch_size_cases(config(), op_a, op_b));
}

TEST_P(BatchKernel, EdgesOfAllOpPairs) {
  for (Op op_a : test::kOps)
    for (Op op_b : test::kOps) expect_all(test::batch_edge_cases(config(), op_a, op_b));
}

TEST_P(BatchKernel, SanitizerSelection) {
  for (const auto& [op_a, op_b] : test::kBothLayouts) expect_all(test::batch_sanitizer_cases(config(), op_a, op_b));
}

TEST_P(BatchKernel, BatchesAndSharedOperands) { expect_all(test::batch_count_cases(config())); }

TEST_P(BatchKernel, TailsOfKAreExact) { expect_all(test::batch_tail_cases(config())); }

TEST_P(BatchKernel, OrderOfBlocksDoesNotChangeTheResult) {
  for (BlockOrder order : {BlockOrder::reverse, BlockOrder::shuffled}) {
    EmulatorOptions options = default_emulator_options();
    options.block_order = order;
    device_ = make_emulated_device(options);
    expect_all(test::batch_count_cases(config()));
  }
}

// One row of A is ones, the others are NaN: that row must stay exact, so masks must select and not multiply.
TEST_P(BatchKernel, NanRowsDoNotLeakIntoOthers) {
  for (int64_t k : {3, 8, 17, 31, 50}) {
    const int64_t m = 7, n = 8;
    Problem p = packed_problem(m, n, k, Op::T, Op::N);
    p.lda = k + 3;
    test::HostMatrix a{std::vector<float>(static_cast<size_t>(p.extent_a()), std::numeric_limits<float>::quiet_NaN()), p.lda,
                       0};
    for (int64_t i = 0; i < k; ++i) a.at(i, 0, 0) = 1;
    const test::HostMatrix b = test::random_matrix(k, n, p.ldb, 0, 1, p.extent_b(), true, 1);
    test::HostMatrix c{std::vector<float>(static_cast<size_t>(p.extent_c()), 0), p.ldc, 0};
    const Buffer device_a = test::upload(*device_, a, 0), device_b = test::upload(*device_, b, 0),
                 device_c = test::upload(*device_, c, 0);
    const Operands operands{device_a.as<float>(), device_b.as<float>(), device_c.as<float>()};
    const TilePlan plan = build_plan(*device_, {config()}, p, operands).value_or_throw();
    ASSERT_TRUE(launch_plan(*device_, plan, p, operands, nullptr, nullptr, nullptr).ok());
    device_->copy_to_host(c.data.data(), device_c.as(), c.data.size() * sizeof(float));
    for (int64_t j = 0; j < n; ++j) EXPECT_EQ(c.at(0, j, 0), static_cast<float>(k)) << config_id(config()) << " k " << k;
  }
}

TEST_P(BatchKernel, LargerMatricesAndSplitsAreIllegal) {
  const KernelConfig c = config();
  const DeviceInfo& info = device_->info();
  EXPECT_EQ(why_illegal({c}, packed_problem(c.BM, c.BN, 1000, Op::N, Op::N, 9), info, 0), "");
  EXPECT_NE(why_illegal({c}, packed_problem(c.BM + 1, c.BN, 8), info, 0), "");
  EXPECT_NE(why_illegal({c}, packed_problem(c.BM, c.BN + 1, 8), info, 0), "");
  EXPECT_NE(why_illegal({c, 2}, packed_problem(c.BM, c.BN, 1000), info, 1 << 30), "");
}

INSTANTIATE_TEST_SUITE_P(EmulatedConfigs, BatchKernel, testing::Range(0, static_cast<int>(emulated_batch_configs().size())),
                         [](const auto& info) {
                           return config_id(emulated_batch_configs()[static_cast<size_t>(info.param)]);
                         });

}  // namespace
}  // namespace gemm
