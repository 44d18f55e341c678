// What graphs get of a context's memory, and when it grows: with graphs that are thrown away, kept, or destroyed while they
// still run.
#include "dispatch/capture_memory.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <thread>

#include "scripted_device.h"

namespace gemm::test {
namespace {

constexpr int64_t kKiB = 1024;
// A stream's workspace, and so what the memory grows by.
constexpr int64_t kStreamBytes = 1024 * kKiB;
const Stream kStream = reinterpret_cast<Stream>(0x5000);

using Graph = std::shared_ptr<ScriptedDevice::Graph>;

class Captures {
 public:
  explicit Captures(EmulatorOptions options = default_emulator_options()) : device(false, std::move(options)) {}

  // One capture of a product; the set it got, or null.
  StreamSet* capture(const CaptureNeed& need, Graph& graph) {
    device.begin_capture(kStream, ++number_);
    const Result<StreamSet*> got = memory.get(kStream, number_, need, kStreamBytes);
    graph = device.end_capture(kStream);
    return got ? *got : nullptr;
  }
  bool capture_and_destroy(const CaptureNeed& need) {
    Graph graph;
    return capture(need, graph) != nullptr;
  }

  ScriptedDevice device;
  CaptureMemory memory{device};

 private:
  uint64_t number_ = 0;
};

CaptureNeed just(int64_t bytes) { return {bytes, bytes, 1, false}; }

// How often the memory has grown, by a stream's workspace with its tickets, since the device had so many bytes free.
int64_t growth(const Captures& captures, int64_t free_bytes_before) {
  constexpr int64_t kStep = kStreamBytes + kMaxTickets * int64_t{sizeof(unsigned)};
  return (free_bytes_before - captures.device.free_bytes()) / kStep;
}

TEST(FirstFit, APlaceOfNothingTakesNoOthersAway) {
  FirstFit range;
  const std::optional<int64_t> nothing = range.take(0, 1000), something = range.take(100, 1000);
  ASSERT_TRUE(nothing && something);
  range.give_back(*nothing);
  EXPECT_FALSE(range.empty());
  EXPECT_NE(range.take(300, 1000), something);
}

TEST(CaptureMemory, PiecesInUseDoNotOverlapAndHaveZeroTickets) {
  struct Taken {
    const char *begin, *end;
    Graph graph;
  };
  Captures captures;
  std::mt19937 random(1);
  std::deque<Taken> taken;
  int lent = 0;
  for (int i = 0; i < 2000; ++i) {
    const int64_t bytes = 1 + static_cast<int64_t>(random() % (300 * kKiB)), tickets = random() % 3000;
    Graph graph;
    StreamSet* set = captures.capture({bytes, bytes, tickets, false}, graph);
    // In no order: some graphs are destroyed soon, others late.
    if (random() % 2 && !taken.empty()) taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(random() % taken.size()));
    if (taken.size() > 12) taken.pop_front();
    if (!set) continue;
    ++lent;
    ASSERT_GE(set->workspace_bytes, bytes);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(set->workspace) % 256, 0u);
    const auto whole = [&](const void* begin, int64_t length) {
      return Taken{static_cast<const char*>(begin), static_cast<const char*>(begin) + length, graph};
    };
    for (const Taken& mine : {whole(set->workspace, bytes), whole(set->tickets, tickets * 4)}) {
      for (const Taken& other : taken) ASSERT_TRUE(mine.end <= other.begin || other.end <= mine.begin) << i;
      if (mine.begin != mine.end) taken.push_back(mine);
    }
    for (int64_t ticket = 0; ticket < tickets; ++ticket) ASSERT_EQ(set->tickets[ticket], 0u) << i;
    // As kernels do.
    std::fill_n(set->workspace, bytes / 4, 1.0f);
  }
  EXPECT_GT(lent, 1000);
}

struct Program {
  const char* name;
  int thrown_away;   // captures before
  size_t in_flight;  // graphs that still run when the next one is captured
  int rounds;        // captures
  int settled;       // after so many of them the memory is as large as it gets
  int64_t growth;    // of the memory, from the start
  int least, most;   // captures that are refused
};

std::ostream& operator<<(std::ostream& out, const Program& program) { return out << program.name; }

class CapturingPrograms : public testing::TestWithParam<Program> {};

// Two graphs fit into a stream's workspace.
TEST_P(CapturingPrograms, MakeTheMemoryGrowOnlyForGraphsThatStay) {
  const Program& program = GetParam();
  const CaptureNeed need = just(kStreamBytes / 2);
  Captures captures;
  const int64_t before = captures.device.free_bytes();
  for (int i = 0; i < program.thrown_away; ++i) ASSERT_TRUE(captures.capture_and_destroy(need));
  std::deque<Graph> running;
  int refused = 0;
  for (int i = 0; i < program.rounds; ++i) {
    Graph graph;
    refused += captures.capture(need, graph) == nullptr;
    running.push_back(graph);
    if (running.size() > program.in_flight) running.pop_front();
    if (i >= program.settled) {
      ASSERT_EQ(growth(captures, before), program.growth) << i;
    }
  }
  EXPECT_EQ(growth(captures, before), program.growth);
  EXPECT_GE(refused, program.least);
  EXPECT_LE(refused, program.most);
}

INSTANTIATE_TEST_SUITE_P(Programs, CapturingPrograms,
                         testing::Values(Program{"thrown_away", 1000, 0, 1, 0, 1, 0, 0},
                                         Program{"one_at_a_time", 0, 1, 1000, 0, 1, 0, 0},
                                         Program{"in_flight", 0, 6, 1000, 12, 4, 0, 0},
                                         Program{"in_flight_after_others", 100, 6, 1000, 0, 1, 500, 900},
                                         Program{"far_too_many_in_flight", 100, 60, 1000, 0, 1, 900, 999},
                                         Program{"kept", 0, 99, 20, 20, 10, 0, 0},
                                         Program{"kept_after_others", 5, 99, 20, 20, 8, 1, 5},
                                         Program{"too_many_kept", 0, 99, 40, 40, 16, 8, 8}),
                         [](const testing::TestParamInfo<Program>& info) { return info.param.name; });

TEST(CaptureMemory, WhatCannotDoWithoutMakesItGrowAllTheSame) {
  Captures captures;
  const int64_t before = captures.device.free_bytes();
  CaptureNeed need = just(kStreamBytes);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(captures.capture_and_destroy(need));
  need.indispensable = true;
  std::vector<Graph> running(CaptureMemory::kMostStreams);
  for (Graph& graph : running) ASSERT_TRUE(captures.capture(need, graph));
  EXPECT_EQ(growth(captures, before), CaptureMemory::kMostStreams);
  EXPECT_FALSE(captures.capture_and_destroy(need)) << "there is a limit";
}

TEST(CaptureMemory, WhoCanDoWithLessLeavesAQuarterToOthers) {
  const CaptureNeed modest{kStreamBytes / 2, 64 * kKiB, 0, false};
  Captures captures;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(captures.capture_and_destroy(modest));
  std::vector<Graph> running(6);
  EXPECT_EQ(captures.capture(modest, running[0])->workspace_bytes, modest.bytes);
  for (int i = 1; i < 5; ++i) EXPECT_EQ(captures.capture(modest, running[i])->workspace_bytes, modest.least_bytes);
  StreamSet* other = captures.capture(just(kStreamBytes / 4), running[5]);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->workspace_bytes, kStreamBytes / 4);
  EXPECT_FALSE(captures.capture_and_destroy(modest));
}

TEST(CaptureMemory, ProductsOfOneCaptureShare) {
  const CaptureNeed modest{kStreamBytes / 2, 64 * kKiB, 0, false};
  Captures captures;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(captures.capture_and_destroy(modest));
  Graph other;
  ASSERT_TRUE(captures.capture(modest, other));
  captures.device.begin_capture(kStream, 1000);
  const auto get = [&](const CaptureNeed& need) {
    return captures.memory.get(kStream, 1000, need, kStreamBytes).value_or_throw();
  };
  const StreamSet* first = get(just(1000));
  EXPECT_EQ(get(just(500)), first);
  EXPECT_NE(get({500, 500, 7, false}), first) << "it has one ticket only";
  const StreamSet* least = get(modest);
  EXPECT_EQ(least->workspace_bytes, modest.least_bytes);
  EXPECT_EQ(get(modest), least) << "a capture of many such products takes no more";
  other = nullptr;
  EXPECT_EQ(get(modest)->workspace_bytes, modest.bytes) << "as soon as there is room";
}

// A graph of many products is one graph.
TEST(CaptureMemory, ManyRefusedProductsOfOneCaptureDoNotMakeItGrow) {
  Captures captures;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(captures.capture_and_destroy(just(kStreamBytes)));
  Graph running;
  ASSERT_TRUE(captures.capture(just(kStreamBytes), running));
  captures.device.begin_capture(kStream, 1000);
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(captures.memory.get(kStream, 1000, just(kStreamBytes), kStreamBytes)) << i;
}

TEST(CaptureMemory, TakesWhatThereIsOnAGpuThatIsNearlyFull) {
  EmulatorOptions options = default_emulator_options();
  options.info.memory_bytes = kStreamBytes / 2;
  Captures captures(std::move(options));
  Graph graph;
  const StreamSet* set = captures.capture(just(100 * kKiB), graph);
  ASSERT_TRUE(set);
  EXPECT_EQ(set->workspace_bytes, 100 * kKiB);
  EXPECT_FALSE(captures.capture_and_destroy(just(kStreamBytes)));
}

// As in a driver, which has a thread of its own for it.
TEST(CaptureMemory, GraphsEndInAnotherThread) {
  constexpr int kGraphs = 3000;
  Captures captures;
  std::mutex mutex;
  std::deque<Graph> running;
  std::thread driver([&] {
    for (int ended = 0; ended < kGraphs;) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (running.empty()) continue;
      running.pop_front();
      ++ended;
    }
  });
  for (int i = 0; i < kGraphs; ++i) {
    Graph graph;
    captures.capture(just(kStreamBytes / 4), graph);
    const std::lock_guard<std::mutex> lock(mutex);
    running.push_back(std::move(graph));
  }
  driver.join();
  const int64_t before = captures.device.free_bytes();
  EXPECT_TRUE(captures.capture_and_destroy(just(kStreamBytes))) << "all pieces have come back";
  EXPECT_EQ(captures.device.free_bytes(), before);
}

TEST(CaptureMemory, FailsWhereNothingIsCaptured) {
  Captures captures;
  EXPECT_FALSE(captures.memory.get(kStream, 1, just(1000), kStreamBytes));
  // What was set aside for it is not lost.
  const int64_t before = captures.device.free_bytes();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(captures.capture_and_destroy(just(kStreamBytes)));
  EXPECT_EQ(captures.device.free_bytes(), before);
}

}  // namespace
}  // namespace gemm::test
