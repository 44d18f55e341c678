// Every configuration of the emulated set on the edge, split and tail cases, for all op pairs.
#include <gtest/gtest.h>

#include "emulator/emulated_configs.h"
#include "emulator/emulated_device.h"
#include "tile_kernel_cases.h"

namespace gemm {
namespace {

class TileKernel : public testing::TestWithParam<int> {
 protected:
  KernelConfig config() const { return emulated_configs()[static_cast<size_t>(GetParam())]; }

  void expect_all(const std::vector<test::ProductCase>& cases) { test::expect_right(*device_, cases); }

  std::unique_ptr<Device> device_ = make_emulated_device();
};

TEST_P(TileKernel, EdgesOfAllOpPairs) {
  for (Op op_a : test::kOps)
    for (Op op_b : test::kOps) expect_all(test::edge_cases(config(), op_a, op_b));
}

TEST_P(TileKernel, SanitizerSelection) {
  for (const auto& [op_a, op_b] : test::kBothLayouts)
    expect_all(test::sanitizer_cases(config(), op_a, op_b, emulated_in_cluster(config())));
}

TEST_P(TileKernel, SplitsWithBothReductions) {
  for (Op op_a : test::kOps) expect_all(test::split_cases(config(), op_a, Op::N));
}

TEST_P(TileKernel, SplitsWithinACluster) {
  for (Op op_a : test::kOps)
    for (Op op_b : test::kOps)
      if (emulated_in_cluster(config())) expect_all(test::cluster_cases(config(), op_a, op_b));
}

TEST_P(TileKernel, StreamK) {
  for (Op op_a : test::kOps)
    for (Op op_b : test::kOps) expect_all(test::stream_k_cases(config(), op_a, op_b));
}

// More tiles than blocks: whole waves come before the shared tiles, and a block works off several items.
TEST_P(TileKernel, PersistentBlocksOfAFewMultiprocessors) {
  const KernelConfig c = config();
  for (int sm_count : {1, 2, 3}) {
    EmulatorOptions options = default_emulator_options();
    options.info.sm_count = sm_count;
    device_ = make_emulated_device(options);
    for (Reduction reduction : {Reduction::ticket, Reduction::stream_k}) {
      if (!is_specialized(c.load)) continue;
      const Problem p = packed_problem(3 * c.BM + 1, 2 * c.BN + 3, 3 * c.BK + 5, Op::N, Op::N);
      expect_all({{{c, 1, reduction}, p, 1, 0}});
    }
  }
}

TEST_P(TileKernel, TailsOfKAreExact) { expect_all(test::tail_cases(config())); }

TEST_P(TileKernel, OrderOfBlocksDoesNotChangeTheResult) {
  for (BlockOrder order : {BlockOrder::reverse, BlockOrder::shuffled}) {
    EmulatorOptions options = default_emulator_options();
    options.block_order = order;
    device_ = make_emulated_device(options);
    expect_all(test::split_cases(config(), Op::N, Op::N));
    if (emulated_in_cluster(config())) expect_all(test::cluster_cases(config(), Op::N, Op::N));
  }
}

// No GPU promises that warps keep pace: whichever falls behind, the block comes to its end. Aligned operands, which the
// tensor copy engine takes, and others; rings that go round several times, and shorter ones.
TEST_P(TileKernel, AnyWarpMayBeLate) {
  const KernelConfig c = config();
  std::vector<test::ProductCase> cases;
  for (const auto& [op_a, op_b] : test::kBothLayouts)
    for (int64_t pad : {0, 1})
      for (int64_t blocks_of_k : {c.stages + 1, 4 * c.stages + 1})
        cases.push_back({{c, 1, Reduction::ticket},
                         test::padded(packed_problem(c.BM, c.BN, blocks_of_k * c.BK, op_a, op_b), pad, pad, 0)});
  const Problem three_tiles = packed_problem(3 * c.BM, c.BN, (c.stages + 1) * c.BK, Op::N, Op::T);
  if (is_specialized(c.load)) {
    cases.push_back({{c, 1, Reduction::ticket}, three_tiles});
    cases.push_back({{c, 1, Reduction::stream_k}, three_tiles});
  }
  if (emulated_in_cluster(c)) cases.push_back({{c, 2, Reduction::cluster}, three_tiles});
  for (int warp = 0; warp < c.threads() / 32; ++warp) {
    SCOPED_TRACE("warp " + std::to_string(warp));
    EmulatorOptions options = default_emulator_options();
    options.late_warp = warp;
    options.info.sm_count = 2;  // so that persistent blocks have more than one tile
    device_ = make_emulated_device(options);
    expect_all(cases);
  }
}

TEST_P(TileKernel, LongLeadingDimensionsTake64BitOffsets) {
  // One column each, so that the huge leading dimension costs no memory.
  Problem p = packed_problem(1, 1, 1, Op::N, Op::N);
  p.lda = p.ldb = 1ll << 28;
  const KernelVariant v = variant_for(config(), p, {});
  EXPECT_EQ(v.long_ld, !has_barrier_ring(v.config.load)) << "the copy engine and the copying warps always have 64 bits";
  test::ProductCase one{{config(), 1, Reduction::ticket}, p};
  EXPECT_EQ(test::check_product(*device_, one), "");
}

// One row is all ones, the other rows are NaN: the first row must stay exact, so masks must select and not multiply.
TEST_P(TileKernel, NanRowsDoNotLeakIntoOthers) {
  for (int64_t k : {31, 33, 47, 63, 65, 97, 127, 129}) {
    const int64_t m = 16, n = 8;
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
    const TilePlan plan = build_plan(*device_, {config(), 1, Reduction::ticket}, p, operands).value_or_throw();
    ASSERT_TRUE(launch_plan(*device_, plan, p, operands, nullptr, nullptr, nullptr).ok());
    device_->copy_to_host(c.data.data(), device_c.as(), c.data.size() * sizeof(float));
    for (int64_t j = 0; j < n; ++j) EXPECT_EQ(c.at(0, j, 0), static_cast<float>(k)) << config_id(config()) << " k " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(EmulatedConfigs, TileKernel, testing::Range(0, static_cast<int>(emulated_configs().size())),
                         [](const auto& info) { return config_id(emulated_configs()[static_cast<size_t>(info.param)]); });

}  // namespace
}  // namespace gemm
