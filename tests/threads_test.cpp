// Threads and streams that share a context.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <thread>

#include "scripted_context.h"

namespace gemm::test {
namespace {

// The two launches of a product with a reduction kernel must not be torn apart by another thread's on the same stream.
TEST(ThreadsShareAContext, AndAStreamWithoutMixingTheirLaunches) {
  Scripted scripted;
  force_split(scripted, Reduction::kernel);
  scripted.device->yield_after_launches();
  constexpr int kThreads = 3, kCalls = 300;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  std::atomic<int> failures{0};
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kCalls; ++i) failures += scripted.multiply(kSplit, stream_number(1)) != GEMM_SUCCESS;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  const auto launches = scripted.device->launches();
  ASSERT_EQ(launches.size(), size_t{2 * kThreads * kCalls});
  for (size_t i = 0; i < launches.size(); ++i) ASSERT_EQ(launches[i].is_reduction, i % 2 == 1) << i;
  EXPECT_EQ(scripted.statistics().exact, uint64_t{kThreads * kCalls}) << "threads that have ended count";
  gemm_reset_statistics(scripted.get());
  EXPECT_EQ(scripted.statistics().exact, 0u);
}

TEST(ThreadsShareAContext, WhileItsTablePolicyAndWorkspaceChange) {
  Scripted scripted;
  force_split(scripted);
  scripted.device->remember_launches(false);
  const TemporaryFolder folder;
  const Choice choice{emulated_configs().front(), 4, Reduction::ticket};
  save_table(table_of(scripted.device->info(), choice, {kSplit}), folder.file("table.json")).value_or_throw();
  std::atomic<bool> stop{false};
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (uintptr_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 0; !stop; ++i) {
        failures += scripted.multiply(kSplit, stream_number(t)) != GEMM_SUCCESS;
        failures += scripted.multiply(packed_problem(33 + i % 20, 20, 16), stream_number(t)) != GEMM_SUCCESS;
      }
    });
  for (int round = 0; round < 20; ++round) {
    scripted.handle.load_table(folder.file("table.json"));
    gemm_set_policy(scripted.get(), round % 2 ? GEMM_POLICY_AUTO : GEMM_POLICY_REPRODUCIBLE);
    scripted.handle.set_workspace(size_t{1} << (20 + round % 2));
    gemm_release_stream(scripted.get(), static_cast<gemm_stream_t>(stream_number(9)));
    scripted.statistics();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

// One context for each thread and GPU, and threads that use several contexts in turn.
TEST(ThreadsShareAContext, AndOthersOfOtherGpusInOneProcess) {
  Scripted first, second;
  // Known from here on, whichever thread comes first.
  for (const Scripted* scripted : {&first, &second})
    EXPECT_EQ(scripted->multiply(packed_problem(20, 20, 20), stream_number(1)), GEMM_SUCCESS);
  const auto use = [&](int rounds) {
    for (int i = 0; i < rounds; ++i)
      for (const Scripted* scripted : {&first, &second}) {
        EXPECT_EQ(scripted->multiply(packed_problem(20, 20, 20), stream_number(1)), GEMM_SUCCESS);
        Scripted own;
        EXPECT_EQ(own.multiply(packed_problem(20, 20, 20)), GEMM_SUCCESS);
        EXPECT_EQ(own.device->launches().size(), 1u);
      }
  };
  for (int generation = 0; generation < 3; ++generation) {
    std::vector<std::thread> threads;
    threads.reserve(3);
    for (int t = 0; t < 3; ++t) threads.emplace_back(use, 5);
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(first.device->launches().size(), 46u);
  EXPECT_EQ(second.statistics().fallback, 46u);
  EXPECT_EQ(second.statistics().new_plans, 1u);
}

// Multiplies at the very end of its thread.
struct LateCaller {
  const Scripted* scripted = nullptr;
  ~LateCaller() {
    for (int i = 0; scripted && i < kCalls; ++i) {
      EXPECT_EQ(scripted->multiply(kSplit, stream_number(1)), GEMM_SUCCESS) << gemm_last_error();
      EXPECT_EQ(scripted->multiply(packed_problem(20, 20, 0)), GEMM_SUCCESS) << gemm_last_error();
    }
  }
  static constexpr int kCalls = 20;
};

TEST(ThreadsShareAContext, AndMayUseItWhileTheyEndWithoutLeavingAnythingBehind) {
  const Scripted scripted;
  force_split(scripted);
  scripted.device->remember_launches(false);
  const auto run_thread = [&] {
    std::thread([&] {
      // Made before what the thread remembers of contexts, and so destroyed after it.
      thread_local LateCaller late;
      late.scripted = &scripted;
      EXPECT_EQ(scripted.multiply(kSplit, stream_number(1)), GEMM_SUCCESS) << gemm_last_error();
    }).join();
  };
  run_thread();
  const size_t bytes_before = mallinfo2().uordblks;
  constexpr int kThreads = 10;
  for (int i = 0; i < kThreads; ++i) run_thread();
  // Sanitizers have an allocator of their own, which mallinfo2 does not see.
  EXPECT_LT(mallinfo2().uordblks, bytes_before + ThreadMemory::kPlans * sizeof(PlanKey)) << "not even one thread's memory";
  const gemm_statistics_t statistics = scripted.statistics();
  EXPECT_EQ(statistics.exact, uint64_t{(kThreads + 1) * (LateCaller::kCalls + 1)});
  EXPECT_EQ(statistics.scaled, uint64_t{(kThreads + 1) * LateCaller::kCalls});
}

TEST(Streams, ThoseBeyondTheBoundWaitForEachOther) {
  Scripted scripted;
  force_split(scripted);
  scripted.handle.set_workspace(size_t{1} << 20);
  const int synchronizations = scripted.device->synchronizations();
  for (uintptr_t i = 0; i < StreamMemory::kMaxStreams; ++i)
    ASSERT_EQ(scripted.multiply(kSplit, stream_number(i)), GEMM_SUCCESS);
  EXPECT_TRUE(scripted.device->touched().empty());
  ASSERT_EQ(scripted.multiply(kSplit, stream_number(100)), GEMM_SUCCESS);
  ASSERT_EQ(scripted.multiply(kSplit, stream_number(101)), GEMM_SUCCESS);
  EXPECT_EQ(scripted.device->touched(),
            (std::vector<Stream>{stream_number(100), stream_number(100), stream_number(101), stream_number(101)}));
  EXPECT_EQ(scripted.device->synchronizations(), synchronizations);
}

}  // namespace
}  // namespace gemm::test
