// gemm-bench on a GPU: ceilings, rows with both baselines, the ladder.
#include "tuner/bench.h"

#include <gtest/gtest.h>

#include "tuner/bench_ladder.h"

namespace gemm {
namespace {

class BenchOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (cuda_device_count(&why) == 0) GTEST_SKIP() << why;
    device_ = open_cuda_device(0).value_or_throw();
    context_ = BenchContext::create(*device_, nullptr).value_or_throw();
  }
  std::unique_ptr<Device> device_;
  std::unique_ptr<BenchContext> context_;
};

TEST_F(BenchOnGpu, PeaksAreNearTheNominalOnes) {
  const Peaks peaks = measure_peaks(*device_).value_or_throw();
  const double lanes = device_->info().limits.compute_capability < 86 ? 64 : 128;
  const double nominal = 2 * lanes * device_->info().sm_count * device_->info().sm_clock_mhz;
  EXPECT_GT(peaks.flops_per_us, 0.5 * nominal) << "of the arithmetic peak at the highest clock";
  EXPECT_LT(peaks.flops_per_us, 1.05 * nominal);
  EXPECT_GT(peaks.bytes_per_us, 50e3) << "50 GB/s: slower than any GPU";
  EXPECT_LT(peaks.bytes_per_us, 50e6);
}

TEST_F(BenchOnGpu, RowsHaveTimesAndBothBaselines) {
  if (!context_->baselines.missing.empty()) GTEST_SKIP() << context_->baselines.missing;
  const Peaks peaks = measure_peaks(*device_).value_or_throw();
  Bench bench(*context_, nullptr, peaks, 5);
  for (const Problem& problem : {packed_problem(512, 512, 512), packed_problem(333, 77, 1025, Op::T, Op::N),
                                 packed_problem(64, 64, 64, Op::N, Op::T, 100)}) {
    const BenchRow row = bench.run({"", problem});
    EXPECT_EQ(row.failure, "") << problem;
    EXPECT_TRUE(row.cublas_us && row.cublaslt_best_us) << problem;
    EXPECT_LE(row.max_scaled_error.value_or(0), 1) << problem;
    EXPECT_GT(row.ours_us, 0.9 * row.floor_us) << problem << ": nothing is faster than the floor";
  }
}

// Operands of this size stay in L2, so only rungs that are far apart are compared.
TEST_F(BenchOnGpu, LadderGetsFaster) {
  const std::vector<LadderTime> times = time_ladder(*context_, nullptr, 1024, 5).value_or_throw();
  ASSERT_GE(times.size(), 7u);
  EXPECT_EQ(times[0].name, "naive");
  EXPECT_EQ(times[5].name, "vectorised");
  EXPECT_LT(times[1].us, times[0].us) << "coalesced against naive";
  EXPECT_LT(times[5].us, times[1].us) << "vectorised against coalesced";
}

}  // namespace
}  // namespace gemm
