#include "kernels/kernel_config.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "emulator/emulated_device.h"
#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

constexpr KernelConfig kGood{
    128, 128, 16, 64, 32, 2, 4, 4, 3, 1, 1, LoadPath::async_transpose, FmaOrder::rows, AccInit::shifted};

TEST(KernelConfig, DerivedSizes) {
  EXPECT_EQ(kGood.WMITER(), 2);
  EXPECT_EQ(kGood.lanes_m() * kGood.lanes_n(), 32);
  EXPECT_EQ(kGood.threads(), 256);
  EXPECT_EQ(kGood.accumulators(), 64);
  EXPECT_EQ(why_invalid(kGood, DeviceLimits{}), nullptr);
}

TEST(KernelConfig, SharedBytesCountRingOrSlices) {
  const KernelVariant nn{kGood, Op::N, Op::N};
  // A [16][128], B transposed [16][132], three stages, and the trailer.
  EXPECT_EQ(shared_bytes(nn), 3 * (16 * 128 + 16 * 132) * 4 + 16);
  KernelConfig sliced = kGood;
  sliced.slices = 2;
  sliced.stages = 2;
  EXPECT_EQ(shared_bytes(KernelVariant{sliced, Op::N, Op::N}), 2 * 128 * 128 * 4 + 16);
}

// Shares of whole quads only: with 36 results a thread and 8 slices, 4 of them would belong to nobody.
TEST(KernelConfig, SlicesShareTheSumWhereSharesAreWholeQuads) {
  struct Case {
    KernelConfig config;
    Op op_a;
    bool shares;
  };
  const Case cases[] = {
      {{192, 96, 16, 48, 96, 3, 4, 4, 4, 2, 1, LoadPath::warp_specialized}, Op::T, true},  // 144 results
      {{32, 16, 64, 32, 16, 1, 4, 4, 3, 4, 1, LoadPath::async}, Op::N, true},              // 16 results, 4 slices
      {{32, 16, 64, 32, 16, 1, 4, 4, 3, 4, 1, LoadPath::async}, Op::T, false},             // rows 8 apart: A has k fast
      {{32, 8, 64, 32, 8, 1, 4, 2, 3, 4, 1, LoadPath::async}, Op::N, false},               // 8 results, 4 slices
      {{48, 24, 32, 48, 24, 3, 4, 1, 3, 8, 1, LoadPath::async_transpose}, Op::N, false},   // 36 results, 8 slices
      {{16, 16, 32, 16, 16, 1, 2, 4, 3, 2, 1, LoadPath::async_transpose}, Op::N, false},   // two adjacent rows
  };
  for (const Case& c : cases) {
    ASSERT_EQ(why_invalid(c.config, DeviceLimits{}), nullptr) << config_id(c.config);
    EXPECT_EQ(slices_share_sum({c.config, c.op_a, Op::N}), c.shares) << config_id(c.config);
  }
}

struct Invalid {
  const char* what;
  void (*change)(KernelConfig&);
  const char* reason_part;
};

// Each change of `good` is out, for its reason.
void expect_invalid(const KernelConfig& good, std::span<const Invalid> cases) {
  for (const Invalid& invalid : cases) {
    KernelConfig config = good;
    invalid.change(config);
    const char* why = why_invalid(config, DeviceLimits{});
    ASSERT_NE(why, nullptr) << invalid.what;
    EXPECT_NE(std::string(why).find(invalid.reason_part), std::string::npos) << invalid.what << ": " << why;
  }
}

TEST(KernelConfig, TheCopyWarpgroupServesQuads) {
  KernelConfig config{128, 128, 16, 64, 64, 2, 4, 4, 4, 1, 2, LoadPath::warp_specialized, FmaOrder::columns};
  EXPECT_EQ(why_invalid(config, DeviceLimits{}), nullptr);
  config.TN = 2, config.WNITER = 4;
  const char* why = why_invalid(config, DeviceLimits{});
  ASSERT_NE(why, nullptr);
  EXPECT_NE(std::string(why).find("quads"), std::string::npos) << why;
}

// 12 x 16 results leave registers for two fragments of 12 values, but not of 16.
TEST(KernelConfig, ManyResultsAThread) {
  constexpr KernelConfig kMany{
      192, 256, 8, 96, 64, 4, 4, 4, 8, 1, 1, LoadPath::warp_specialized, FmaOrder::columns, AccInit::shifted};
  EXPECT_EQ(kMany.accumulators(), 192);
  EXPECT_TRUE(fragments_in_place(kMany));
  EXPECT_EQ(why_invalid(kMany, DeviceLimits{}), nullptr);
  EXPECT_EQ(copy_registers({kMany}) * 128 + compute_registers(kMany, copy_registers({kMany})) * 256, 168 * 384);
  const Invalid cases[] = {
      {"order", [](KernelConfig& c) { c.order = FmaOrder::rows; }, "spill"},
      {"load", [](KernelConfig& c) { c.load = LoadPath::warp_specialized_k, c.BK = 16; }, "warp_specialized only"},
      {"BK", [](KernelConfig& c) { c.BK = 16, c.stages = 4; }, "instruction cache"},
      {"more", [](KernelConfig& c) { c.WN = 128; }, "192 accumulators"},
  };
  expect_invalid(kMany, cases);
}

TEST(KernelConfig, SaysWhyAConfigurationIsOut) {
  const Invalid cases[] = {
      {"zero", [](KernelConfig& c) { c.BK = 0; }, "positive"},
      {"7x13 tile", [](KernelConfig& c) { c.BM = 7, c.BN = 13; }, "multiple of the warp tile"},
      {"TM 3", [](KernelConfig& c) { c.TM = 3; }, "TM and TN"},
      {"warp tile", [](KernelConfig& c) { c.WN = 48, c.BN = 144; }, "sub-tiles"},
      {"slices", [](KernelConfig& c) { c.slices = 8; }, "slice"},
      {"threads", [](KernelConfig& c) { c.BM = 512, c.BN = 512; }, "threads per block"},
      {"accumulators", [](KernelConfig& c) { c.WM = 128, c.WN = 64, c.WNITER = 4; }, "accumulators"},
      {"stages of register staging", [](KernelConfig& c) { c.load = LoadPath::register_staged; }, "2 stages"},
      {"one stage", [](KernelConfig& c) { c.stages = 1; }, "2 stages or more"},
      {"shared memory",
       [](KernelConfig& c) { c.BM = c.BN = 256, c.WM = 64, c.WN = 64, c.TM = 8, c.TN = 8, c.stages = 8, c.BK = 16; },
       "shared memory"},
      {"min_blocks", [](KernelConfig& c) { c.min_blocks = 9; }, "min_blocks"},
  };
  expect_invalid(kGood, cases);
}

TEST(KernelConfig, BatchFamilySaysWhyAConfigurationIsOut) {
  constexpr KernelConfig kBatch{
      16, 16, 16, 16, 16, 1, 4, 2, 1, 4, 1, LoadPath::async, FmaOrder::rows, AccInit::plain, Family::batch};
  EXPECT_EQ(why_invalid(kBatch, DeviceLimits{}), nullptr);
  EXPECT_EQ(matrices_per_block(kBatch), 4);
  // A [16][16] and B [16][16 + 4] of each warp; C [16][16 + 4] fits into the same place.
  EXPECT_EQ(shared_bytes(KernelVariant{kBatch, Op::N, Op::N}), 4 * (16 * 16 + 16 * 20) * 4);
  const Invalid cases[] = {
      {"zero", [](KernelConfig& c) { c.stages = 0; }, "positive"},
      {"two warps a matrix", [](KernelConfig& c) { c.BM = 32; }, "whole matrix"},
      {"lanes", [](KernelConfig& c) { c.TM = 8, c.TN = 4; }, "32 thread tiles"},
      {"BK", [](KernelConfig& c) { c.BK = 12; }, "multiple of 8"},
      {"load", [](KernelConfig& c) { c.load = LoadPath::register_staged; }, "load async"},
      {"order", [](KernelConfig& c) { c.order = FmaOrder::columns; }, "order rows"},
      {"shared memory", [](KernelConfig& c) { c.BK = 128, c.stages = 8, c.slices = 8; }, "shared memory"},
      {"registers", [](KernelConfig& c) { c.min_blocks = 16; }, "spill"},
  };
  expect_invalid(kBatch, cases);
}

TEST(KernelConfig, AsyncCopiesNeedSm80) {
  DeviceLimits turing;
  turing.compute_capability = 75;
  turing.shared_bytes_per_block = turing.shared_bytes_per_sm = 65536;
  EXPECT_NE(why_invalid(kGood, turing), nullptr);
  KernelConfig staged = kGood;
  staged.load = LoadPath::register_staged;
  staged.stages = 2;
  EXPECT_EQ(why_invalid(staged, turing), nullptr);
}

TEST(KernelId, RoundTripsAndIsUnique) {
  for (const KernelConfig& config : emulated_configs()) {
    const auto read = config_from_id(config_id(config));
    ASSERT_TRUE(read.has_value()) << config_id(config);
    EXPECT_EQ(*read, config);
  }
  for (const char* bad : {"", "tile_", "tile_64x64", "tile_128x128x16_w64x32_t4x4x2_s3_k1_b1_async_rows",
                          "tile_128x128x16_w64x32_t4x4x2_s3_k1_b1_async_rows_plain_more",
                          "tile_-128x128x16_w64x32_t4x4x2_s3_k1_b1_async_rows_plain",
                          "tile_128x128x16_w64x32_t4x4x2_s3_k1_b1_warp_rows_plain"})
    EXPECT_FALSE(config_from_id(bad).has_value()) << bad;
}

TEST(KernelSource, NamesTheVariant) {
  const std::string source = source_of(variant_spec({kGood, Op::N, Op::T, 4, 1, false}));
  EXPECT_NE(source.find("__launch_bounds__(256, 1)"), std::string::npos);
  EXPECT_NE(source.find("gemm::Op::N, gemm::Op::T, 4, 1, false"), std::string::npos);
}

}  // namespace
}  // namespace gemm
