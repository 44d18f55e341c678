// The batch kernel on a GPU: the emulated set and the configurations that are meant for large batches, on the same cases as
// the emulator, and a batch beyond the limit of a grid's z extent.
#include <gtest/gtest.h>

#include "batch_kernel_cases.h"
#include "emulator/emulated_device.h"
#include "gpu_kernel_fixture.h"

namespace gemm {
namespace {

std::vector<KernelConfig> all_configs() {
  std::vector<KernelConfig> configs = emulated_batch_configs();
  const auto add = [&](KernelConfig c) {
    c.WM = c.BM, c.WN = c.BN;
    c.family = Family::batch;
    configs.push_back(c);
  };
  using enum LoadPath;
  add({16, 16, 16, 0, 0, 1, 4, 2, 1, 4, 8, async, FmaOrder::rows, AccInit::plain});
  add({16, 16, 32, 0, 0, 1, 4, 2, 2, 8, 2, async, FmaOrder::rows, AccInit::plain});
  add({32, 32, 32, 0, 0, 2, 4, 4, 1, 4, 4, async, FmaOrder::rows, AccInit::plain});
  add({32, 8, 32, 0, 0, 1, 4, 2, 1, 4, 8, async, FmaOrder::rows, AccInit::plain});
  add({64, 32, 16, 0, 0, 1, 8, 8, 2, 2, 1, async, FmaOrder::rows, AccInit::plain});
  return configs;
}

using GpuBatchKernel = test::GpuKernelFixture<all_configs>;

TEST_P(GpuBatchKernel, AllSizes) {
  for (Op op_a : test::kOps)
    for (Op op_b : test::kOps) expect_all(test::batch_size_cases(config_, op_a, op_b));
}

TEST_P(GpuBatchKernel, EdgesOfAllOpPairs) {
  for (Op op_a : test::kOps)
    for (Op op_b : test::kOps) expect_all(test::batch_edge_cases(config_, op_a, op_b));
}

TEST_P(GpuBatchKernel, BatchesAndSharedOperands) { expect_all(test::batch_count_cases(config_)); }

TEST_P(GpuBatchKernel, TailsOfKAreExact) { expect_all(test::batch_tail_cases(config_)); }

TEST_P(GpuBatchKernel, BatchBeyondTheGridsZ) {
  expect_all({{{config_}, packed_problem(3, 5, 8, Op::N, Op::N, 65537), 1, 0}});
}

INSTANTIATE_TEST_SUITE_P(Configs, GpuBatchKernel, testing::Range(0, static_cast<int>(all_configs().size())),
                         test::config_name<all_configs>);

}  // namespace
}  // namespace gemm
