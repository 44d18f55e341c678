// The cases of tests/ladder_test.cpp on a GPU.
#include <gtest/gtest.h>

#include "ladder_cases.h"

namespace gemm {
namespace {

TEST(LadderOnGpu, EveryRungIsRightOnEveryEdge) {
  std::string why;
  if (cuda_device_count(&why) == 0) GTEST_SKIP() << why;
  const auto device = open_cuda_device(0).value_or_throw();
  for (const LadderRung& rung : ladder_rungs())
    for (const test::ProductCase& c : test::ladder_cases())
      EXPECT_EQ(test::check_rung(*device, rung, c), "") << rung.name << ": " << c.problem;
}

}  // namespace
}  // namespace gemm
