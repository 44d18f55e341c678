// A context whose calls are captured into graphs: what is captured, whose the workspace is, what is kept how long.
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "scripted_context.h"

namespace gemm::test {
namespace {

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

}  // namespace
}  // namespace gemm::test
