// How a context behaves in a program: captures, threads, policies, statistics, the record and the log. On devices that leave
// out the kernels where only the launches count, so that thousands of calls take no time.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>

#include <cstdlib>
#include <deque>
#include <fstream>
#include <new>
#include <set>
#include <sstream>
#include <thread>

#include "dispatch_cases.h"
#include "gemm/gemm.hpp"
#include "scripted_device.h"

namespace {

thread_local int64_t allocations = 0;

}  // namespace

// Counts what the calling thread allocates.
// Not inlined, or the compiler takes malloc and delete for a mismatch.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes > 0 ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace gemm::test {
namespace {

// Matrices that nobody reads.
float* const kSomewhere = reinterpret_cast<float*>(0x10000);

Stream stream_number(uintptr_t number) { return reinterpret_cast<Stream>(0x5000 + 16 * number); }

// A context on a scripted device.
struct Scripted {
  std::vector<std::string> warnings, news;
  ScriptedDevice* device;
  Handle handle;

  explicit Scripted(bool runs_kernels = false, EmulatorOptions options = default_emulator_options(),
                    LogLevel level = LogLevel::warn)
      : Scripted(std::make_unique<ScriptedDevice>(runs_kernels, std::move(options)), level) {}

  Scripted(std::unique_ptr<ScriptedDevice> owned, LogLevel level)
      : device(owned.get()),
        handle(make_context(std::move(owned), {false, [this](const std::string& text) { warnings.push_back(text); },
                                               [this](const std::string& text) { news.push_back(text); }, level})) {}

  gemm_context_t* get() const { return handle.get(); }
  gemm_statistics_t statistics() const {
    gemm_statistics_t counted{};
    EXPECT_EQ(gemm_get_statistics(get(), &counted), GEMM_SUCCESS);
    return counted;
  }
  gemm_status_t multiply(const Problem& p, Stream stream = nullptr) const {
    const float alpha = 1, beta = 0;
    const gemm_problem_t problem = c_problem(p);
    return gemm_sgemm_ex(get(), static_cast<gemm_stream_t>(stream), &problem, GEMM_SCALARS_HOST, &alpha, kSomewhere,
                         kSomewhere, &beta, kSomewhere);
  }
};

const Problem kSplit = packed_problem(40, 40, 256);

void force_split(const Scripted& scripted, Reduction reduction = Reduction::ticket) {
  force(scripted.get(), {emulated_configs().front(), 4, reduction}, {kSplit});
}

// ------------------------------------------------------------------------------------------------------------ captures

TEST(Captures, TheFirstCallOfItsKindTouchesNothingButTheProduct) {
  Scripted scripted;
  force_split(scripted);
  ScriptedDevice& device = *scripted.device;
  device.begin_capture(stream_number(1), 1);
  ASSERT_EQ(scripted.multiply(kSplit, stream_number(1)), GEMM_SUCCESS) << gemm_last_error();
  const auto graph = device.end_capture(stream_number(1));
  EXPECT_EQ(graph->kept.size(), 1u);
  ASSERT_EQ(device.launches().size(), 1u);
  EXPECT_EQ(device.launches()[0].stream, stream_number(1));
  EXPECT_EQ(device.launches()[0].args.split_k, 4);
  EXPECT_EQ(device.synchronizations(), 0);
  EXPECT_TRUE(device.touched().empty());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(device.launches()[0].args.tickets[i], 0u) << "tickets must be zero from the start";
}

TEST(Captures, WorkspaceBelongsToTheGraph) {
  Scripted scripted;
  force_split(scripted);
  ScriptedDevice& device = *scripted.device;
  const auto workspace_of_last = [&] { return device.launches().back().args.workspace; };
  ASSERT_EQ(scripted.multiply(kSplit, stream_number(1)), GEMM_SUCCESS);
  const float* eager = workspace_of_last();

  device.begin_capture(stream_number(1), 1);
  ASSERT_EQ(scripted.multiply(kSplit, stream_number(1)), GEMM_SUCCESS);
  const float* captured = workspace_of_last();
  EXPECT_NE(captured, eager);
  ASSERT_EQ(scripted.multiply(kSplit, stream_number(1)), GEMM_SUCCESS);
  EXPECT_EQ(workspace_of_last(), captured) << "nodes that follow each other can share";
  // A forked stream of the same capture runs beside the first.
  device.begin_capture(stream_number(2), 1);
  ASSERT_EQ(scripted.multiply(kSplit, stream_number(2)), GEMM_SUCCESS);
  EXPECT_NE(workspace_of_last(), captured);
  device.end_capture(stream_number(2));
  auto graph = device.end_capture(stream_number(1));

  ASSERT_EQ(scripted.multiply(kSplit, stream_number(1)), GEMM_SUCCESS);
  EXPECT_EQ(workspace_of_last(), eager) << "behind the capture the stream has its own again";
  device.begin_capture(stream_number(1), 2);
  ASSERT_EQ(scripted.multiply(kSplit, stream_number(1)), GEMM_SUCCESS);
  EXPECT_NE(workspace_of_last(), captured) << "the first graph still lives";
  device.end_capture(stream_number(1));
  graph = nullptr;
  device.begin_capture(stream_number(1), 3);
  ASSERT_EQ(scripted.multiply(kSplit, stream_number(1)), GEMM_SUCCESS);
  EXPECT_EQ(workspace_of_last(), captured) << "it came back with its graph";
  device.end_capture(stream_number(1));
}

// A graph names the kernels that it was captured with, and knows nothing of contexts.
TEST(Captures, KernelsStayLoadedWhenTheirPlansAreForgotten) {
  const Scripted scripted;
  force_split(scripted, Reduction::kernel);
  scripted.device->begin_capture(stream_number(1), 1);
  ASSERT_EQ(scripted.multiply(kSplit, stream_number(1)), GEMM_SUCCESS);
  const auto graph = scripted.device->end_capture(stream_number(1));
  const std::ptrdiff_t loaded = scripted.device->loaded_kernels();
  EXPECT_GE(loaded, 2) << "the product's and the reduction's";
  ASSERT_EQ(gemm_set_policy(scripted.get(), GEMM_POLICY_TUNED_ONLY), GEMM_SUCCESS);
  ASSERT_EQ(gemm_set_workspace(scripted.get(), nullptr, size_t{1} << 20), GEMM_SUCCESS);
  EXPECT_EQ(scripted.device->loaded_kernels(), loaded);
}

TEST(Captures, ManyThatAreThrownAwayTakeNoMoreMemory) {
  Scripted scripted;
  force_split(scripted);
  ScriptedDevice& device = *scripted.device;
  device.remember_launches(false);
  int64_t free_bytes = 0;
  for (uint64_t number = 1; number <= 1000; ++number) {
    device.begin_capture(stream_number(1), number);
    ASSERT_EQ(scripted.multiply(kSplit, stream_number(1)), GEMM_SUCCESS);
    device.end_capture(stream_number(1));
    if (number == 1) free_bytes = device.free_bytes();
  }
  EXPECT_EQ(device.free_bytes(), free_bytes);
  EXPECT_TRUE(scripted.warnings.empty());
}

// Sets the context's workspace to what one product needs, so that so many graphs use it up.
void allow_one_product(Scripted& scripted, const Problem& p) {
  const gemm_problem_t problem = c_problem(p);
  size_t bytes = 0;
  EXPECT_EQ(gemm_workspace_size(scripted.get(), &problem, &bytes), GEMM_SUCCESS);
  scripted.handle.set_workspace(bytes);
}

TEST(Captures, LivingGraphsBeyondTheBoundDoNotSplitK) {
  Scripted scripted;
  force_split(scripted);
  allow_one_product(scripted, kSplit);
  ScriptedDevice& device = *scripted.device;
  std::vector<std::shared_ptr<ScriptedDevice::Graph>> living;
  std::set<const float*> workspaces;
  for (uint64_t number = 1; number <= 40; ++number) {
    device.begin_capture(stream_number(1), number);
    ASSERT_EQ(scripted.multiply(kSplit, stream_number(1)), GEMM_SUCCESS) << gemm_last_error();
    living.push_back(device.end_capture(stream_number(1)));
    const TileArgs args = device.launches().back().args;
    EXPECT_EQ(args.split_k, number <= CaptureMemory::kMostStreams ? 4 : 1) << number;
    if (args.split_k > 1) {
      EXPECT_TRUE(workspaces.insert(args.workspace).second) << number;
    }
  }
  EXPECT_EQ(scripted.warnings.size(), 1u);
  living.clear();
  device.begin_capture(stream_number(1), 100);
  ASSERT_EQ(scripted.multiply(kSplit, stream_number(1)), GEMM_SUCCESS);
  EXPECT_EQ(device.launches().back().args.split_k, 4) << "the memory has come back";
}

// Replayed and destroyed without waiting: the driver gives their memory back late. What is captured meanwhile gets memory of
// its own while there is some, and else does without; nothing grows.
TEST(Captures, GraphsOnTheirWayTakeNoMoreMemory) {
  for (const bool memory_is_short : {false, true}) {
    SCOPED_TRACE(memory_is_short);
    Scripted scripted;
    force_split(scripted);
    if (memory_is_short) allow_one_product(scripted, kSplit);
    ScriptedDevice& device = *scripted.device;
    std::deque<std::shared_ptr<ScriptedDevice::Graph>> running;
    int64_t free_bytes = 0;
    int split = 0;
    for (uint64_t number = 1; number <= 1000; ++number) {
      device.begin_capture(stream_number(1), number);
      ASSERT_EQ(scripted.multiply(kSplit, stream_number(1)), GEMM_SUCCESS) << gemm_last_error();
      running.push_back(device.end_capture(stream_number(1)));
      // Those of the beginning end at once, and show that graphs come and go.
      if (running.size() > 80 || number <= 100) running.pop_front();
      split += device.launches().back().args.split_k == 4;
      if (number == 1) free_bytes = device.free_bytes();
      ASSERT_EQ(device.free_bytes(), free_bytes) << number;
    }
    EXPECT_EQ(split == 1000, !memory_is_short) << split;
  }
}

// There is nothing else that gives the same bits, so these take what they need up to the bound.
TEST(Captures, ReproducibleProductsAreServedBesideGraphsOnTheirWay) {
  const Problem small = packed_problem(33, 30, 1600);
  Scripted scripted;
  ScriptedDevice& device = *scripted.device;
  scripted.handle.set_workspace(2 * 3 * 32 * 32 * sizeof(float));  // two tiles in three parts
  ASSERT_EQ(gemm_set_policy(scripted.get(), GEMM_POLICY_REPRODUCIBLE), GEMM_SUCCESS);
  std::deque<std::shared_ptr<ScriptedDevice::Graph>> running;
  const auto capture = [&](uint64_t number, size_t most) {
    device.begin_capture(stream_number(1), number);
    const gemm_status_t status = scripted.multiply(small, stream_number(1));
    running.push_back(device.end_capture(stream_number(1)));
    while (running.size() > most) running.pop_front();
    return status;
  };
  for (uint64_t number = 1; number <= 200; ++number)
    ASSERT_EQ(capture(number, number <= 100 ? 0 : 10), GEMM_SUCCESS) << gemm_last_error();
  for (const ScriptedDevice::Launch& launch : device.launches()) ASSERT_EQ(launch.args.split_k, 3);
  for (uint64_t number = 201; number <= 206; ++number) ASSERT_EQ(capture(number, 99), GEMM_SUCCESS) << gemm_last_error();
  EXPECT_EQ(capture(207, 99), GEMM_NOT_SUPPORTED);
}

TEST(Captures, TheCallersWorkspaceServesGraphsToo) {
  Scripted scripted;
  force_split(scripted);
  const Buffer own = scripted.device->allocate(1 << 20).value_or_throw();
  scripted.handle.set_workspace(own.as(), own.bytes());
  scripted.device->begin_capture(stream_number(1), 1);
  ASSERT_EQ(scripted.multiply(kSplit, stream_number(1)), GEMM_SUCCESS);
  EXPECT_EQ(scripted.device->launches().back().args.workspace, own.as<float>());
}

// ------------------------------------------------------------------------------------------------------------- threads

// The two launches of a product with a reduction kernel must not be torn apart by another thread's on the same stream.
TEST(ThreadsShareAContext, AndAStreamWithoutMixingTheirLaunches) {
  Scripted scripted;
  force_split(scripted, Reduction::kernel);
  scripted.device->yield_after_launches();
  constexpr int kThreads = 3, kCalls = 300;
  std::vector<std::thread> threads;
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

// ------------------------------------------------------------------------------------------------------------ hot path

TEST(HotPath, AKnownShapeAllocatesNothing) {
  Scripted scripted;
  scripted.device->remember_launches(false);
  const KernelConfig tma = emulated_configs()[8], specialized = emulated_configs()[10];
  for (const Choice& choice :
       {Choice{emulated_configs().front(), 4, Reduction::ticket}, Choice{emulated_configs().front(), 4, Reduction::kernel},
        Choice{tma, 1, Reduction::ticket}, Choice{specialized, 1, Reduction::ticket},
        Choice{specialized, 4, Reduction::kernel, Relayout::ab}}) {
    force(scripted.get(), choice, {kSplit});
    EXPECT_NE(explanation(scripted.get(), kSplit).find("rule       exact"), std::string::npos)
        << explanation(scripted.get(), kSplit);
    ASSERT_EQ(scripted.multiply(kSplit), GEMM_SUCCESS);
    const int64_t before = allocations;
    for (int i = 0; i < 10; ++i) scripted.multiply(kSplit);
    EXPECT_EQ(allocations, before) << to_string(choice);
  }
  EXPECT_EQ(scripted.statistics().exact, 55u);
}

// The panels of a product on copies need less than the whole product, which runs where nothing is copied.
TEST(HotPath, ProductsThatNameTheirOperandsOnTheGpuFitTheirWorkspaceWithoutCopies) {
  const Problem p = packed_problem(64, 200'000, 1024, Op::N, Op::N);
  Scripted scripted;
  const Choice choice{emulated_configs()[10], 4, Reduction::ticket, Relayout::b};
  ASSERT_EQ(why_illegal(choice, p, scripted.device->info(), kWorkspaceBytes), "");
  ASSERT_NE(why_illegal(without_relayout(choice), p, scripted.device->info(), kWorkspaceBytes), "");
  force(scripted.get(), choice, {p});
  for (const bool arrays : {false, true}) {
    const gemm_problem_t problem = c_problem(p);
    const float scalars[] = {1, 0};
    float* const matrices[] = {kSomewhere};
    ASSERT_EQ(arrays ? gemm_sgemm_batched_ex(scripted.get(), nullptr, &problem, GEMM_SCALARS_HOST, scalars, matrices,
                                             matrices, scalars + 1, matrices)
                     : gemm_sgemm_ex(scripted.get(), nullptr, &problem, GEMM_SCALARS_DEVICE, scalars, kSomewhere, kSomewhere,
                                     scalars + 1, kSomewhere),
              GEMM_SUCCESS)
        << gemm_last_error();
    const TileArgs launched = scripted.device->launches().back().args;
    EXPECT_EQ(launched.split_k, 1) << "partial tiles of all of C take more than the workspace";
  }
}

TEST(HotPath, PlansThatAreDroppedAreMadeAgain) {
  Scripted scripted;
  scripted.device->remember_launches(false);
  constexpr auto kMany = static_cast<int64_t>(PlanMemory::kMaxPlans) + 10;
  for (int64_t m = 1; m <= kMany; ++m) ASSERT_EQ(scripted.multiply(packed_problem(m, 1, 1)), GEMM_SUCCESS);
  EXPECT_EQ(scripted.statistics().new_plans, static_cast<uint64_t>(kMany));
  for (const int64_t m : {kMany, int64_t{1}}) ASSERT_EQ(scripted.multiply(packed_problem(m, 1, 1)), GEMM_SUCCESS);
  EXPECT_EQ(scripted.statistics().new_plans, static_cast<uint64_t>(kMany) + 1) << "the first was dropped, the last was not";
}

TEST(HotPath, AKnownShapeDoesNotExcuseWrongPointers) {
  Scripted scripted;
  const Problem p = packed_problem(20, 20, 20);
  ASSERT_EQ(scripted.multiply(p), GEMM_SUCCESS);
  const ApiCase c{p};
  float* const odd = reinterpret_cast<float*>(0x10002);
  EXPECT_EQ(call(scripted.get(), c, nullptr, kSomewhere, kSomewhere), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(call(scripted.get(), c, kSomewhere, kSomewhere, nullptr), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(call(scripted.get(), c, kSomewhere, kSomewhere, odd), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(scripted.statistics().fallback, 1u);
}

// ---------------------------------------------------------------------------------------- policies, statistics, record

TEST(Policies, DecideWhoServes) {
  Scripted scripted;
  force_split(scripted);
  gemm_policy_t policy = GEMM_POLICY_REPRODUCIBLE;
  EXPECT_EQ(gemm_get_policy(scripted.get(), &policy), GEMM_SUCCESS);
  EXPECT_EQ(policy, GEMM_POLICY_AUTO);
  ASSERT_EQ(scripted.multiply(kSplit), GEMM_SUCCESS);
  ASSERT_EQ(gemm_set_policy(scripted.get(), GEMM_POLICY_CUBLAS_ONLY), GEMM_SUCCESS);
  EXPECT_EQ(scripted.multiply(kSplit), GEMM_NOT_SUPPORTED) << "the emulated device has no cuBLAS";
  EXPECT_EQ(scripted.multiply(packed_problem(4, 4, 0)), GEMM_NOT_SUPPORTED);
  ASSERT_EQ(gemm_set_policy(scripted.get(), GEMM_POLICY_TUNED_ONLY), GEMM_SUCCESS);
  EXPECT_EQ(scripted.multiply(kSplit), GEMM_SUCCESS);
  EXPECT_EQ(explanation(scripted.get(), kSplit).find("cuBLAS"), std::string::npos);
  ASSERT_EQ(gemm_set_policy(scripted.get(), GEMM_POLICY_REPRODUCIBLE), GEMM_SUCCESS);
  EXPECT_EQ(scripted.multiply(kSplit), GEMM_SUCCESS);
  EXPECT_EQ(gemm_set_policy(scripted.get(), static_cast<gemm_policy_t>(4)), GEMM_INVALID_ARGUMENT);
  const gemm_statistics_t statistics = scripted.statistics();
  EXPECT_EQ(statistics.exact, 2u);
  EXPECT_EQ(statistics.reproducible, 1u);
  EXPECT_EQ(statistics.cublas + statistics.scaled, 0u);
}

// The bits of a product under the reproducible policy, with packed matrices or others.
std::vector<float> reproducible_bits(const Scripted& scripted, const ApiCase& c) {
  Device& device = *scripted.device;
  const Problem& p = c.problem;
  // The same numbers whatever the leading dimensions.
  const Problem packed = packed_problem(p.m, p.n, p.k, p.op_a, p.op_b, p.batch);
  const auto spread = [](const HostMatrix& from, int64_t rows, int64_t columns, int64_t batch, int64_t ld, int64_t stride) {
    HostMatrix to{std::vector<float>(static_cast<size_t>((batch - 1) * stride + ld * columns), kNan), ld, stride};
    for (int64_t i = 0; i < batch; ++i)
      for (int64_t column = 0; column < columns; ++column)
        for (int64_t row = 0; row < rows; ++row) to.at(row, column, i) = from.at(row, column, i);
    return to;
  };
  const auto random = [&](int64_t rows, int64_t columns, int64_t extent, int64_t ld, int64_t stride, unsigned seed) {
    return random_matrix(rows, columns, ld, stride, p.batch, extent, false, seed);
  };
  const HostMatrix a = spread(random(p.rows_a(), p.columns_a(), packed.extent_a(), packed.lda, packed.stride_a, 1),
                              p.rows_a(), p.columns_a(), p.batch, p.lda, p.stride_a);
  const HostMatrix b = spread(random(p.rows_b(), p.columns_b(), packed.extent_b(), packed.ldb, packed.stride_b, 2),
                              p.rows_b(), p.columns_b(), p.batch, p.ldb, p.stride_b);
  HostMatrix before =
      spread(random(p.m, p.n, packed.extent_c(), packed.ldc, packed.stride_c, 3), p.m, p.n, p.batch, p.ldc, p.stride_c);
  const Buffer device_a = upload(device, a, c.offset_a), device_b = upload(device, b, c.offset_b);
  GuardedC out(device, before, 64, c.offset_c);
  EXPECT_EQ(call(scripted.get(), c, device_a.as<float>() + c.offset_a, device_b.as<float>() + c.offset_b, out.data()),
            GEMM_SUCCESS)
      << gemm_last_error();
  HostMatrix after = before;
  EXPECT_EQ(out.read(after), "");
  std::vector<float> result;
  for (int64_t i = 0; i < p.batch; ++i)
    for (int64_t column = 0; column < p.n; ++column)
      for (int64_t row = 0; row < p.m; ++row) result.push_back(after.at(row, column, i));
  return result;
}

TEST(Policies, ReproducibleResultsDependOnTheNumbersOnly) {
  Scripted plain(true), tuned(true);
  for (const Scripted* scripted : {&plain, &tuned})
    ASSERT_EQ(gemm_set_policy(scripted->get(), GEMM_POLICY_REPRODUCIBLE), GEMM_SUCCESS);
  for (const Problem& p : {packed_problem(33, 30, 1600, Op::T, Op::N), packed_problem(270, 260, 41),
                           packed_problem(20, 24, 70, Op::N, Op::T, 2)}) {
    force(tuned.get(), {emulated_configs()[4], 2, Reduction::ticket}, {p});
    tuned.handle.set_workspace(size_t{3} << 20);
    const std::vector<float> expected = reproducible_bits(plain, {p, 0.7f, 1.3f});
    Problem padded = with_ld(p, p.lda + 3, p.ldb + 5, p.ldc + 1);
    padded = with_strides(padded, padded.lda * p.columns_a() + 1, padded.ldb * p.columns_b(), padded.ldc * p.n + 2);
    ApiCase shifted{p, 0.7f, 1.3f, Inputs::random, kNan, 1, 2, 3};
    for (ApiCase c : {ApiCase{p, 0.7f, 1.3f}, ApiCase{padded, 0.7f, 1.3f}, shifted}) {
      EXPECT_EQ(reproducible_bits(tuned, c), expected) << c;
      c.device_scalars = c.arrays = true;
      EXPECT_EQ(reproducible_bits(tuned, c), expected) << c;
    }
    // Were the bits the same anyway, this test could not fail.
    gemm_set_policy(tuned.get(), GEMM_POLICY_AUTO);
    if (p.k > 1000) {
      EXPECT_NE(reproducible_bits(tuned, {p, 0.7f, 1.3f}), expected);
    }
    gemm_set_policy(tuned.get(), GEMM_POLICY_REPRODUCIBLE);
  }
  plain.handle.set_workspace(0);
  EXPECT_EQ(plain.multiply(packed_problem(33, 30, 1600)), GEMM_NOT_SUPPORTED) << "another split would be another result";
  EXPECT_NE(std::string(gemm_last_error()).find("workspace"), std::string::npos) << gemm_last_error();
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Sets an environment variable for one test.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Environment() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(Record, HoldsEachUntunedShapeOnce) {
  const TemporaryFolder folder;
  const std::string path = folder.file("shapes.csv");
  const Environment variable("GEMM_RECORD", path);
  for (int process = 0; process < 2; ++process) {
    Scripted scripted;
    force_split(scripted);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(scripted.multiply(kSplit), GEMM_SUCCESS);
      ASSERT_EQ(scripted.multiply(packed_problem(5, 6, 7, Op::T, Op::N)), GEMM_SUCCESS);
      ASSERT_EQ(scripted.multiply(with_ld(packed_problem(5, 6, 7, Op::N, Op::T, 3), 8, 9, 10)), GEMM_SUCCESS);
      ASSERT_EQ(scripted.multiply(packed_problem(5, 6, 0)), GEMM_SUCCESS);
    }
  }
  EXPECT_EQ(text_of(path), "m,n,k,transa,transb,batch,lda,ldb,ldc\n5,6,7,T,N,1,7,7,5\n5,6,7,N,T,3,8,9,10\n");
}

TEST(Record, SeveralProcessesWriteOneFile) {
  const TemporaryFolder folder;
  const std::string path = folder.file("shapes.csv");
  std::ofstream(path) << ShapeRecord::kHeader << "\n1,1,1,N,N,1,1,1,1\n2,2";  // another one was killed in mid-write
  std::vector<pid_t> children;
  for (int child = 0; child < 3; ++child) {
    const pid_t pid = fork();
    if (pid == 0) {
      ShapeRecord record(path);
      bool good = true;
      for (int64_t m = 1; m <= 50; ++m) good = good && record.add(packed_problem(m, 1, 1)).ok();
      _exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::istringstream text(text_of(path));
  std::multiset<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.insert(line);
  EXPECT_EQ(lines.size(), 1u + 1 + 50);
  EXPECT_EQ(lines.count("1,1,1,N,N,1,1,1,1"), 1u);
  for (int64_t m = 2; m <= 50; ++m) {
    const std::string size = std::to_string(m);
    EXPECT_EQ(lines.count(size + ",1,1,N,N,1," + size + ",1," + size), 1u) << m;
  }
}

TEST(Record, IsBoundedAndLeavesOtherFilesAlone) {
  const TemporaryFolder folder;
  {
    ShapeRecord record(folder.file("many.csv"));
    for (size_t m = 1; m <= ShapeRecord::kMaxLines + 5; ++m)
      ASSERT_TRUE(record.add(packed_problem(static_cast<int64_t>(m), 1, 1)).ok());
  }
  std::istringstream text(text_of(folder.file("many.csv")));
  size_t lines = 0;
  for (std::string line; std::getline(text, line);) ++lines;
  EXPECT_EQ(lines, ShapeRecord::kMaxLines + 1);

  std::ofstream(folder.file("letter.txt")) << "Dear reader,\n";
  for (const std::string& path : {folder.file("letter.txt"), folder.path(), std::string("/nowhere/shapes.csv")}) {
    const Environment variable("GEMM_RECORD", path);
    Scripted scripted;
    for (int64_t m = 1; m <= 2; ++m) EXPECT_EQ(scripted.multiply(packed_problem(m, 1, 1)), GEMM_SUCCESS);
    ASSERT_EQ(scripted.warnings.size(), 1u) << path;
    EXPECT_NE(scripted.warnings[0].find(path), std::string::npos) << scripted.warnings[0];
  }
  EXPECT_EQ(text_of(folder.file("letter.txt")), "Dear reader,\n");
}

TEST(Logging, LevelsDecideWhatIsSaid) {
  for (const auto& [level, news] : {std::pair{LogLevel::off, 0u}, {LogLevel::warn, 0u}, {LogLevel::info, 1u}}) {
    Scripted scripted(false, default_emulator_options(), level);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(scripted.multiply(packed_problem(5, 6, 7)), GEMM_SUCCESS);
    ASSERT_EQ(scripted.news.size(), news);
    if (news > 0) {
      EXPECT_NE(scripted.news[0].find("5x6x7 NN: default: tile_"), std::string::npos) << scripted.news[0];
    }
  }
  std::string complaint;
  {
    const Environment variable("GEMM_LOG", "debug");
    EXPECT_EQ(log_level_from_environment(&complaint), LogLevel::debug);
    EXPECT_EQ(complaint, "");
  }
  const Environment variable("GEMM_LOG", "loud");
  EXPECT_EQ(log_level_from_environment(&complaint), LogLevel::warn);
  EXPECT_NE(complaint.find("loud"), std::string::npos);
}

}  // namespace
}  // namespace gemm::test
