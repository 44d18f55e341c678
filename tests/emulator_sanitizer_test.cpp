// Shows that the sanitizer builds of the emulator would report what they are there for: a missing barrier and an access
// outside a buffer. The kernels here are wrong on purpose.
#include <gtest/gtest.h>

#include <vector>

#include "emulator/executor.h"
#include "emulator/platform_host.h"
#include "kernels/result.h"

namespace gemm {
namespace {

// Each thread writes a word and reads its neighbour's.
void exchange(bool with_barrier, std::vector<float>& out) {
  GridRun run;
  run.threads = 64;
  run.shared_bytes = 64 * sizeof(float);
  run.thread_body = [&] {
    float* shared = dynamic_shared();
    const unsigned t = threadIdx.x;
    shared[t] = static_cast<float>(t);
    if (with_barrier) block_barrier();
    out[t] = shared[(t + 1) % 64];
  };
  run_grid(run);
}

TEST(Emulator, BarriersOrderSharedMemory) {
  std::vector<float> out(64);
  exchange(true, out);
  for (unsigned t = 0; t < 64; ++t) EXPECT_EQ(out[t], static_cast<float>((t + 1) % 64));
}

#ifdef __SANITIZE_THREAD__
TEST(EmulatorDeathTest, ThreadSanitizerReportsAMissingBarrier) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::vector<float> out(64);
        exchange(false, out);
        std::exit(0);
      },
      testing::ExitedWithCode(66), "data race");
}
#else
TEST(Emulator, UninitialisedSharedMemoryIsNan) {
  std::vector<float> out(64);
  exchange(false, out);  // fibres run in order, so every thread but the last reads before its neighbour writes
  EXPECT_TRUE(std::isnan(out[0]));
}

TEST(Emulator, ReportsADivergentBarrier) {
  GridRun run;
  run.threads = 32;
  run.thread_body = [] {
    if (threadIdx.x != 0) block_barrier();
  };
  EXPECT_THROW(run_grid(run), Error);
}
#endif

#ifdef __SANITIZE_ADDRESS__
TEST(EmulatorDeathTest, AddressSanitizerReportsAnAccessOutsideSharedMemory) {
  EXPECT_DEATH(
      {
        GridRun run;
        run.shared_bytes = 64;
        run.thread_body = [] { dynamic_shared()[16] = 1; };
        run_grid(run);
      },
      "heap-buffer-overflow");
}
#endif

}  // namespace
}  // namespace gemm
