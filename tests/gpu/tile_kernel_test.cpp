// The tile kernel on a GPU: the emulated set and the large configurations that only a GPU can run, on the same cases as the
// emulator, and the limits of the grid.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "emulator/emulated_device.h"
#include "gpu_kernel_fixture.h"
#include "tile_kernel_cases.h"

namespace gemm {
namespace {

// Shapes of the fast end of the search space: large tiles, deep rings, many slices, tall and wide tiles.
std::vector<KernelConfig> large_configs() {
  using enum LoadPath;
  return {
      {128, 128, 16, 64, 32, 2, 4, 4, 3, 1, 1, async_transpose, FmaOrder::rows, AccInit::shifted},
      {256, 128, 16, 64, 64, 1, 8, 8, 4, 1, 1, async_transpose, FmaOrder::rows, AccInit::plain},
      {128, 256, 8, 64, 64, 2, 4, 4, 4, 1, 1, async_transpose, FmaOrder::columns, AccInit::shifted},
      {128, 16, 64, 64, 16, 1, 8, 2, 3, 8, 1, async, FmaOrder::rows, AccInit::plain},
      {64, 64, 64, 32, 32, 1, 4, 8, 3, 4, 1, async, FmaOrder::columns, AccInit::plain},
      {16, 16, 128, 16, 16, 1, 2, 4, 3, 8, 1, async, FmaOrder::rows, AccInit::plain},
      {128, 128, 8, 32, 64, 2, 8, 4, 2, 1, 2, register_staged, FmaOrder::rows, AccInit::plain},
      {128, 16, 64, 128, 16, 1, 8, 8, 4, 8, 1, tma, FmaOrder::rows, AccInit::plain},
      {64, 64, 32, 64, 32, 1, 8, 8, 4, 2, 1, tma, FmaOrder::rows, AccInit::plain},
      {128, 8, 64, 128, 8, 1, 8, 4, 3, 8, 1, tma, FmaOrder::rows, AccInit::plain},
      {16, 128, 64, 16, 64, 1, 4, 8, 3, 4, 1, tma, FmaOrder::columns, AccInit::plain},
      {256, 128, 16, 64, 64, 4, 4, 4, 5, 1, 1, warp_specialized, FmaOrder::columns, AccInit::shifted},
      {128, 128, 16, 64, 64, 2, 4, 4, 4, 1, 2, warp_specialized, FmaOrder::columns, AccInit::shifted},
      {64, 128, 32, 32, 64, 2, 4, 4, 4, 2, 1, warp_specialized, FmaOrder::rows, AccInit::plain},
      {96, 192, 16, 48, 96, 3, 4, 4, 4, 2, 1, warp_specialized, FmaOrder::columns, AccInit::plain},
      {128, 128, 16, 64, 32, 2, 4, 4, 4, 1, 1, warp_specialized_k, FmaOrder::columns, AccInit::plain},
      {48, 128, 32, 48, 32, 1, 4, 4, 4, 2, 1, warp_specialized_k, FmaOrder::columns, AccInit::plain},
      {64, 32, 64, 64, 32, 2, 4, 4, 4, 4, 1, warp_specialized_k, FmaOrder::rows, AccInit::shifted},
      {192, 256, 8, 96, 64, 4, 4, 4, 8, 1, 1, warp_specialized, FmaOrder::columns, AccInit::shifted},
      {256, 192, 8, 128, 48, 3, 4, 4, 8, 1, 1, warp_specialized, FmaOrder::rows, AccInit::shifted},
  };
}

std::vector<KernelConfig> all_configs() {
  std::vector<KernelConfig> configs = emulated_configs();
  for (const KernelConfig& config : large_configs()) configs.push_back(config);
  return configs;
}

using GpuTileKernel = test::GpuKernelFixture<all_configs>;

TEST_P(GpuTileKernel, EdgesOfAllOpPairs) {
  for (Op op_a : test::kOps)
    for (Op op_b : test::kOps) expect_all(test::edge_cases(config_, op_a, op_b));
}

TEST_P(GpuTileKernel, SplitsWithBothReductions) {
  for (Op op_a : test::kOps) expect_all(test::split_cases(config_, op_a, Op::N));
}

TEST_P(GpuTileKernel, SplitsWithinACluster) {
  if (device_->info().limits.compute_capability < 90) GTEST_SKIP() << "no clusters before sm_90";
  for (Op op_a : test::kOps)
    for (Op op_b : test::kOps) expect_all(test::cluster_cases(config_, op_a, op_b));
}

TEST_P(GpuTileKernel, StreamK) {
  for (Op op_a : test::kOps)
    for (Op op_b : test::kOps) expect_all(test::stream_k_cases(config_, op_a, op_b));
  if (!is_specialized(config_.load)) return;
  // Whole waves before the shared tiles.
  const int most = device_->info().sm_count * config_.min_blocks;
  const Problem p = packed_problem((most / 4 + 1) * config_.BM + 3, 9 * config_.BN, 5 * config_.BK + 3, Op::T, Op::N);
  expect_all({{{config_, 1, Reduction::stream_k}, p, 1, 0}, {{config_, 1, Reduction::ticket}, p, 1, 0}});
}

TEST_P(GpuTileKernel, TailsOfKAreExact) { expect_all(test::tail_cases(config_)); }

INSTANTIATE_TEST_SUITE_P(Configs, GpuTileKernel, testing::Range(0, static_cast<int>(all_configs().size())),
                         test::config_name<all_configs>);

// Kernels are launched while their predecessors still run. Each product reads what the one before it has written, in one
// stream without waiting; the same with a wait behind every launch gives the same bits.
TEST(GpuTileKernelChain, ProductsThatReadTheirPredecessors) {
  Result<std::unique_ptr<Device>> opened = open_cuda_device(0);
  if (!opened) GTEST_SKIP() << "no GPU: " << opened.error();
  Device& device = **opened;
  if (device.info().limits.compute_capability != 90) GTEST_SKIP() << "the configurations are for sm_90";
  using enum LoadPath;
  const KernelConfig small{32, 32, 16, 16, 32, 1, 4, 4, 3, 1, 1, tma, FmaOrder::rows, AccInit::shifted};
  const KernelConfig persistent{64, 64, 16, 32, 32, 2, 4, 4, 3, 1, 1, warp_specialized, FmaOrder::columns, AccInit::shifted};
  const std::vector<Choice> choices = {{small, 1, Reduction::ticket},
                                       {persistent, 4, Reduction::kernel},
                                       {emulated_configs()[2], 3, Reduction::ticket},
                                       {persistent, 1, Reduction::stream_k},
                                       {small, 2, Reduction::cluster}};
  constexpr int64_t kLength = 320;
  constexpr int kLinks = 60;
  const Problem p = packed_problem(kLength, kLength, kLength);
  const test::HostMatrix start = test::random_matrix(kLength, kLength, kLength, 0, 1, kLength * kLength, false, 7);
  const Buffer workspace = device.allocate(64 << 20).value_or_throw();
  const Buffer tickets = device.allocate(kMaxTickets * sizeof(unsigned)).value_or_throw();
  device.set_words(tickets.as(), 0, kMaxTickets, nullptr);
  const auto last_of_chain = [&](bool wait) {
    const Buffer b = test::upload(device, start, 0);
    Buffer c[2] = {test::upload(device, start, 0), test::upload(device, start, 0)};
    for (int link = 0; link < kLinks; ++link) {
      // About as large as before: a sum of 320 products of numbers from [-1, 1) grows by about 10.
      const Operands o{c[link % 2].as<float>(), b.as<float>(), c[(link + 1) % 2].as<float>(), 0.1f, 0.5f};
      const Choice& choice = choices[static_cast<size_t>(link) % choices.size()];
      const TilePlan plan = build_plan(device, choice, p, o).value_or_throw();
      launch_plan(device, plan, p, o, workspace.as<float>(), tickets.as<unsigned>(), nullptr).value_or_throw();
      if (wait) device.synchronize(nullptr);
    }
    device.synchronize(nullptr);
    std::vector<float> result(static_cast<size_t>(kLength * kLength));
    device.copy_to_host(result.data(), c[kLinks % 2].as<float>(), result.size() * sizeof(float));
    return result;
  };
  const std::vector<float> waited = last_of_chain(true);
  EXPECT_TRUE(std::all_of(waited.begin(), waited.end(), [](float x) { return std::isfinite(x); }));
  for (int repeat = 0; repeat < 5; ++repeat) EXPECT_EQ(last_of_chain(false), waited) << "repeat " << repeat;
}

// More matrices and more tiles along n than a grid's y or z extent holds.
TEST(GpuTileKernelGrid, BatchesAndTilesBeyondGridLimits) {
  Result<std::unique_ptr<Device>> device = open_cuda_device(0);
  if (!device) GTEST_SKIP() << "no GPU: " << device.error();
  const KernelConfig config = emulated_configs()[5];
  for (int64_t batch : {65535, 65536, 65537})
    EXPECT_EQ(
        test::check_product(**device, {{config, 1, Reduction::ticket}, packed_problem(16, 16, 8, Op::N, Op::N, batch)}), "");
  const int64_t beyond = 65535ll * config.BN + 1;
  EXPECT_EQ(test::check_product(**device, {{config, 1, Reduction::ticket}, packed_problem(8, beyond, 8)}), "");
  EXPECT_EQ(test::check_product(**device, {{config, 1, Reduction::ticket}, packed_problem(65535ll * config.BM + 1, 8, 8)}),
            "");
}

}  // namespace
}  // namespace gemm
