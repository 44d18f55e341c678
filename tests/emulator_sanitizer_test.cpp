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

// Each block of a cluster writes its rank, and reads that of its neighbour.
void exchange_ranks(bool first_barrier, bool second_barrier, std::vector<float>& out) {
  constexpr unsigned kBlocks = 6, kPerCluster = 3, kThreads = 32;
  GridRun run;
  run.grid = {1, kBlocks, 1, kPerCluster};
  run.threads = kThreads;
  run.shared_bytes = kThreads * 4 * sizeof(float);
  run.order = BlockOrder::reverse;
  run.thread_body = [&] {
    const unsigned rank = blockIdx.y % kPerCluster, peer = (rank + 1) % kPerCluster;
    float* mine = dynamic_shared() + threadIdx.x * 4;
    std::fill_n(mine, 4, static_cast<float>(blockIdx.y));
    if (first_barrier) cluster_barrier();
    out[blockIdx.y * kThreads + threadIdx.x] = load_peer_quad(shared_pointer(mine), static_cast<int>(peer), true).w;
    if (second_barrier) cluster_barrier();
  };
  run_grid(run);
}

TEST(Emulator, ClusterBarriersOrderTheSharedMemoryOfPeers) {
  std::vector<float> out(6 * 32);
  exchange_ranks(true, true, out);
  for (unsigned block = 0; block < 6; ++block)
    EXPECT_EQ(out[block * 32 + 5], static_cast<float>(block / 3 * 3 + (block + 1) % 3)) << block;
}

#ifdef __SANITIZE_THREAD__
TEST(EmulatorDeathTest, ThreadSanitizerReportsAMissingClusterBarrier) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const bool first : {false, true})
    EXPECT_EXIT(
        {
          std::vector<float> out(6 * 32);
          exchange_ranks(first, !first, out);
          std::exit(0);
        },
        testing::ExitedWithCode(66), "data race");
}

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

TEST(Emulator, PeersThatHaveNotBegunOrHaveEndedAreNan) {
  std::vector<float> out(6 * 32);
  exchange_ranks(false, true, out);
  EXPECT_TRUE(std::isnan(out[0]));
  exchange_ranks(true, false, out);
  EXPECT_TRUE(std::isnan(out[2 * 32])) << "block 0 has ended when block 2 reads it";
}

TEST(Emulator, ReportsADivergentBarrier) {
  GridRun run;
  run.threads = 32;
  run.thread_body = [] {
    if (threadIdx.x != 0) block_barrier();
  };
  EXPECT_THROW(run_grid(run), Error);
  run.grid = {1, 2, 1, 2};
  run.thread_body = [] {
    if (blockIdx.y != 0) cluster_barrier();
  };
  EXPECT_THROW(run_grid(run), Error);
}

// Who looks on without arriving and comes late finds the parity that he waits for gone: a GPU would hang.
TEST(Emulator, ReportsAWarpThatMissedAPhase) {
  for (const int phases : {1, 2}) {
    GridRun run;
    run.threads = 64;
    run.shared_bytes = sizeof(EmulatedBarrier*);
    run.late_warp = 1;
    run.thread_body = [&] {
      const SharedPointer barrier = shared_pointer(dynamic_shared());
      if (threadIdx.x == 0) barrier_init(barrier, 1);
      block_barrier();
      if (threadIdx.x == 0)
        for (int i = 0; i < phases; ++i) barrier_arrive(barrier);
      if (threadIdx.x >= 32) barrier_wait(barrier, 0);
    };
    if (phases == 1)
      EXPECT_NO_THROW(run_grid(run));
    else
      EXPECT_THROW(run_grid(run), Error);
  }
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
