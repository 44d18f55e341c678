// The streaming kernel on a GPU: the emulated set and the large configurations that only a GPU can run, on the same cases as
// the emulator, and long products.
#include <gtest/gtest.h>

#include "emulator/emulated_stream_configs.h"
#include "gpu_kernel_fixture.h"
#include "tile_kernel_cases.h"

namespace gemm {
namespace {

constexpr KernelConfig stream_config(FmaOrder order, int bm, int bn, int bk, int wm, int wn, int tm, int tn, int stages,
                                     int slices, int min_blocks) {
  return {bm,
          bn,
          bk,
          wm,
          wn,
          1,
          tm,
          tn,
          stages,
          slices,
          min_blocks,
          LoadPath::register_staged,
          order,
          AccInit::plain,
          Family::stream};
}

// Shapes of the fast end of the search space, of one to 16 columns and rows.
std::vector<KernelConfig> large_configs() {
  using enum FmaOrder;
  return {
      stream_config(rows, 16, 1, 4096, 16, 1, 4, 1, 4, 8, 2),    stream_config(rows, 4, 1, 6144, 4, 1, 4, 1, 3, 16, 1),
      stream_config(rows, 64, 1, 1024, 64, 1, 4, 1, 4, 8, 2),    stream_config(rows, 32, 4, 2048, 16, 4, 4, 4, 4, 4, 2),
      stream_config(rows, 32, 8, 1024, 16, 8, 4, 8, 4, 4, 2),    stream_config(rows, 512, 16, 16, 128, 16, 4, 16, 2, 1, 4),
      stream_config(columns, 4, 32, 1536, 4, 16, 4, 4, 3, 4, 2), stream_config(columns, 8, 128, 256, 8, 128, 8, 4, 4, 8, 1),
  };
}

std::vector<KernelConfig> all_configs() {
  std::vector<KernelConfig> configs(std::begin(kEmulatedStreamConfigs), std::end(kEmulatedStreamConfigs));
  for (const KernelConfig& config : large_configs()) configs.push_back(config);
  return configs;
}

using GpuStreamKernel = test::GpuKernelFixture<all_configs>;

TEST_P(GpuStreamKernel, EdgesOfAllOpPairs) {
  for (Op op_a : test::kOps)
    for (Op op_b : test::kOps) expect_all(test::edge_cases(config_, op_a, op_b));
}

TEST_P(GpuStreamKernel, SplitsWithBothReductions) {
  for (Op op_a : test::kOps)
    for (Op op_b : test::kOps) expect_all(test::split_cases(config_, op_a, op_b));
}

TEST_P(GpuStreamKernel, TailsOfKAreExact) { expect_all(test::tail_cases(config_)); }

// Many blocks and many chunks, so that a missing barrier or wait has a chance to show.
TEST_P(GpuStreamKernel, LongProducts) {
  const bool long_a = stream_shape(config_).long_a;
  for (Op op_a : test::kOps)
    for (Op op_b : test::kOps)
      for (int split : {1, 4}) {
        const int64_t long_side = 1500, k = 5003;
        const Problem p = packed_problem(long_a ? long_side : config_.BM, long_a ? config_.BN : long_side, k, op_a, op_b);
        expect_all({{{config_, split, Reduction::ticket}, p, 1, 0}});
      }
}

INSTANTIATE_TEST_SUITE_P(Configs, GpuStreamKernel, testing::Range(0, static_cast<int>(all_configs().size())),
                         test::config_name<all_configs>);

}  // namespace
}  // namespace gemm
