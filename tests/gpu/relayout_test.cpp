// Products on copies of their operands, on the GPU; with panels, which the emulator is too slow for.
#include "relayout_cases.h"

#include <gtest/gtest.h>

#include "emulator/emulated_device.h"

namespace gemm {
namespace {

TEST(GpuRelayout, ProductsOnCopiesAreRight) {
  Result<std::unique_ptr<Device>> device = open_cuda_device(0);
  if (!device) GTEST_SKIP() << "no GPU: " << device.error();
  if ((*device)->info().limits.compute_capability != 90) GTEST_SKIP() << "the configurations are for sm_90";
  for (const size_t config : {0, 8, 10})
    for (const Relayout relayout : test::kRelayouts)
      for (const Op op_a : {Op::N, Op::T})
        for (const Op op_b : {Op::N, Op::T})
          test::expect_right(**device, test::relayout_cases(emulated_configs()[config], relayout, op_a, op_b));
}

TEST(GpuRelayout, PanelsAreRight) {
  Result<std::unique_ptr<Device>> device = open_cuda_device(0);
  if (!device) GTEST_SKIP() << "no GPU: " << device.error();
  if ((*device)->info().limits.compute_capability != 90) GTEST_SKIP() << "the configurations are for sm_90";
  struct Case {
    int64_t m, n;
    Relayout relayout;
    int64_t panels;
  };
  constexpr int64_t kDepth = 20000;
  for (const Case& c : {Case{5, 3001, Relayout::b, 3}, Case{3001, 5, Relayout::a, 3}, Case{5, 2100, Relayout::ab, 3},
                        Case{2100, 5, Relayout::ab, 3}})
    for (const Reduction reduction : {Reduction::ticket, Reduction::stream_k}) {
      const Choice choice{emulated_configs()[10], 1, reduction, c.relayout};
      Problem p = packed_problem(c.m, c.n, kDepth, Op::T, Op::N);
      p.ldc += 3;
      ASSERT_EQ(relaid_product(c.relayout, p).panels, c.panels) << p;
      test::ProductCase one{choice, p};
      one.beta = 0.5f;
      EXPECT_EQ(test::check_product(**device, one), "") << to_string(one);
    }
}

}  // namespace
}  // namespace gemm
