// Bias and ReLU on a GPU: a few configurations of each family and load path, on the same cases as the emulator, and a
// product that fills the GPU.
#include <gtest/gtest.h>

#include "emulator/emulated_device.h"
#include "emulator/emulated_stream_configs.h"
#include "epilogue_cases.h"
#include "gpu_kernel_fixture.h"

namespace gemm {
namespace {

std::vector<KernelConfig> all_configs() {
  using enum LoadPath;
  return {
      {128, 128, 16, 64, 32, 2, 4, 4, 3, 1, 1, async_transpose, FmaOrder::rows, AccInit::shifted},
      {128, 16, 64, 64, 16, 1, 8, 2, 3, 8, 1, async, FmaOrder::rows, AccInit::plain},
      {16, 16, 128, 16, 16, 1, 2, 4, 3, 8, 1, async, FmaOrder::rows, AccInit::plain},
      {128, 128, 8, 32, 64, 2, 8, 4, 2, 1, 2, register_staged, FmaOrder::rows, AccInit::plain},
      {64, 64, 32, 64, 32, 1, 8, 8, 4, 2, 1, tma, FmaOrder::rows, AccInit::plain},
      {16, 128, 64, 16, 64, 1, 4, 8, 3, 4, 1, tma, FmaOrder::columns, AccInit::plain},
      {256, 128, 16, 64, 64, 4, 4, 4, 5, 1, 1, warp_specialized, FmaOrder::columns, AccInit::shifted},
      {64, 128, 32, 32, 64, 2, 4, 4, 4, 2, 1, warp_specialized, FmaOrder::rows, AccInit::plain},
      {48, 128, 32, 48, 32, 1, 4, 4, 4, 2, 1, warp_specialized_k, FmaOrder::columns, AccInit::plain},
      kEmulatedStreamConfigs[1],
      kEmulatedStreamConfigs[3],
      kEmulatedStreamConfigs[5],
  };
}

using GpuEpilogueKernel = test::GpuKernelFixture<all_configs>;

TEST_P(GpuEpilogueKernel, WholeSums) {
  for (const Op op_a : test::kOps)
    for (const Epilogue epilogue : {Epilogue::bias, Epilogue::relu, Epilogue::bias_relu})
      expect_all(test::epilogue_cases({config_, 1, Reduction::ticket}, op_a, Op::N, epilogue));
}

TEST_P(GpuEpilogueKernel, SplitsAreFinishedOnce) {
  std::vector<Choice> choices = {{config_, 3, Reduction::ticket}, {config_, 3, Reduction::kernel}};
  if (is_specialized(config_.load)) choices.push_back({config_, 1, Reduction::stream_k});
  if (can_cluster(config_) && device_->info().limits.compute_capability >= 90)
    choices.push_back({config_, 3, Reduction::cluster});
  for (const Choice& choice : choices)
    for (const Op op_a : test::kOps) expect_all(test::epilogue_cases(choice, op_a, Op::N, Epilogue::bias_relu));
}

// The layers of a network: many tiles for each block, copies of operands where a kernel takes them.
TEST_P(GpuEpilogueKernel, LinearLayers) {
  if (config_.family != Family::tile) return;
  for (const Relayout relayout : {Relayout::none, Relayout::ab}) {
    test::ProductCase c{{config_, 1, Reduction::ticket, relayout}, packed_problem(1111, 777, 512, Op::T, Op::N)};
    c.epilogue = Epilogue::bias_relu;
    expect_all({c});
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, GpuEpilogueKernel, testing::Range(0, static_cast<int>(all_configs().size())),
                         test::config_name<all_configs>);

TEST(GpuEpilogueBatchKernel, BothWaysToC) {
  Result<std::unique_ptr<Device>> device = open_cuda_device(0);
  if (!device) GTEST_SKIP() << "no GPU: " << device.error();
  for (const KernelConfig& config : emulated_batch_configs())
    for (const Op op_a : test::kOps) {
      if (config.BM < 12) continue;  // the cases take off a few rows
      test::expect_right(**device, test::epilogue_cases({config}, op_a, Op::N, Epilogue::bias_relu));
    }
}

}  // namespace
}  // namespace gemm
