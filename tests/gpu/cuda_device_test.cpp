// The CUDA device on a real GPU: memory, building, launching, timing, and that it leaves the caller's CUDA state alone.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "kernels/device.h"
#include "kernels/kernel_args.h"

namespace gemm {
namespace {

constexpr int kThreads = 256;

class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (cuda_device_count(&why) == 0) GTEST_SKIP() << why;
    device_ = open_cuda_device(0).value_or_throw();
    fill_ = device_->build(fill_spec()).value_or_throw();
    scale_ = device_->build(scale_spec()).value_or_throw();
  }

  Buffer floats(int64_t count) { return device_->allocate(static_cast<size_t>(count) * sizeof(float)).value_or_throw(); }

  std::vector<float> values(const Buffer& buffer) {
    std::vector<float> host(buffer.bytes() / sizeof(float));
    device_->copy_to_host(host.data(), buffer.as(), buffer.bytes());
    return host;
  }

  Result<bool> launch_fill(float* data, int64_t count, unsigned seed, int threads = kThreads, int shared_bytes = 0,
                           Stream stream = nullptr) {
    FillArgs args{};
    args.data = data, args.count = count, args.seed = seed;
    const auto blocks = static_cast<unsigned>(std::min<int64_t>((count + kThreads - 1) / kThreads, 2048));
    return device_->launch(*fill_, {blocks, 1, 1}, threads, shared_bytes, &args, sizeof args, stream);
  }

  void fill(const Buffer& buffer, unsigned seed, Stream stream = nullptr) {
    const auto count = static_cast<int64_t>(buffer.bytes() / sizeof(float));
    launch_fill(buffer.as<float>(), count, seed, kThreads, 0, stream).value_or_throw();
  }

  // Whether everything still works.
  void expect_healthy() {
    const Buffer buffer = floats(1000);
    fill(buffer, 1);
    device_->synchronize(nullptr);
    EXPECT_TRUE(std::ranges::any_of(values(buffer), [](float value) { return value != 0; }));
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  }

  std::unique_ptr<Device> device_;
  std::shared_ptr<Kernel> fill_, scale_;
};

TEST_F(CudaDeviceTest, InfoIsFilledIn) {
  const DeviceInfo& info = device_->info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_EQ(info.uuid.size(), std::string("GPU-01234567-0123-0123-0123-0123456789ab").size()) << info.uuid;
  EXPECT_FALSE(info.emulated);
  EXPECT_GT(info.sm_count, 0);
  EXPECT_GT(info.memory_bytes, int64_t{1} << 30);
  EXPECT_GT(info.l2_bytes, 0);
  EXPECT_GT(info.sm_clock_mhz, 100);
  EXPECT_NE(info.driver.find('.'), std::string::npos) << info.driver;
  EXPECT_NE(info.cuda_runtime.find('.'), std::string::npos);
  EXPECT_GE(info.limits.compute_capability, 75);
  EXPECT_GE(info.limits.shared_bytes_per_block, 48 * 1024);
  EXPECT_GE(info.limits.shared_bytes_per_sm, info.limits.shared_bytes_per_block);
  EXPECT_GE(info.limits.registers_per_sm, 65536);
  EXPECT_GE(info.limits.threads_per_sm, 1024);
  EXPECT_GT(device_->free_bytes(), 0);
  EXPECT_LE(device_->free_bytes(), info.memory_bytes);
}

TEST_F(CudaDeviceTest, CopiesAndSetsWords) {
  std::vector<float> host(100003);
  std::iota(host.begin(), host.end(), 1.0f);
  const Buffer buffer = floats(static_cast<int64_t>(host.size()));
  device_->copy_to_device(buffer.as(), host.data(), buffer.bytes());
  EXPECT_EQ(values(buffer), host);

  device_->set_words(buffer.as<float>() + 1, 0x40490fdb, host.size() - 2, nullptr);
  const std::vector<float> after = values(buffer);
  EXPECT_EQ(after.front(), host.front());
  EXPECT_EQ(after.back(), host.back());
  EXPECT_TRUE(std::all_of(after.begin() + 1, after.end() - 1, [](float value) { return value == 3.14159274f; }));

  device_->set_words(buffer.as(), 0, 0, nullptr);
  EXPECT_EQ(values(buffer), after);
}

TEST_F(CudaDeviceTest, LaunchesWithItsArguments) {
  constexpr size_t kRows = 5, kColumns = 7, kLd = 8;
  const Buffer c = floats(kLd * kColumns);
  std::vector<float> expected(kLd * kColumns, 3.0f);
  device_->copy_to_device(c.as(), expected.data(), c.bytes());
  ScaleArgs args{};
  args.c = c.as<float>(), args.ldc = kLd, args.m = kRows, args.n = kColumns, args.batch = 1, args.beta = 0.5f;
  ASSERT_TRUE(device_->launch(*scale_, {1, 1, 1}, kThreads, 0, &args, sizeof args, nullptr).ok());
  device_->synchronize(nullptr);
  for (size_t column = 0; column < kColumns; ++column)
    for (size_t row = 0; row < kRows; ++row) expected[column * kLd + row] = 1.5f;
  EXPECT_EQ(values(c), expected);
}

TEST_F(CudaDeviceTest, BuildsEachKernelOnceWhileItIsHeld) {
  std::vector<std::shared_ptr<Kernel>> kernels(8);
  std::vector<std::thread> threads;
  threads.reserve(kernels.size());
  for (auto& kernel : kernels) threads.emplace_back([&] { kernel = device_->build(guard_spec()).value_or_throw(); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& kernel : kernels) EXPECT_EQ(kernel, kernels[0]);
  EXPECT_GT(kernels[0]->resources().registers, 0);
  EXPECT_EQ(kernels[0]->resources().spill_bytes, 0);
  EXPECT_NE(kernels[0], fill_);
}

TEST_F(CudaDeviceTest, KernelsAndBuffersOutliveTheDevice) {
  std::unique_ptr<Device> other = open_cuda_device(0).value_or_throw();
  const std::shared_ptr<Kernel> kernel = other->build(compare_spec()).value_or_throw();
  const Buffer buffer = other->allocate(1000).value_or_throw();
  other.reset();
  EXPECT_GT(kernel->resources().registers, 0);
  EXPECT_EQ(cudaMemset(buffer.as(), 0, buffer.bytes()), cudaSuccess);
}

TEST_F(CudaDeviceTest, BuildFailureHasTheCompilersLog) {
  KernelSpec spec = fill_spec();
  spec.function = "gemm::there_is_no_such_function";
  const auto kernel = device_->build(spec);
  ASSERT_FALSE(kernel.ok());
  EXPECT_NE(kernel.error().find("there_is_no_such_function"), std::string::npos) << kernel.error();
}

TEST_F(CudaDeviceTest, AllowsAllTheSharedMemoryOfABlock) {
  const Buffer buffer = floats(1000);
  const auto launched = launch_fill(buffer.as<float>(), 1000, 1, kThreads, device_->info().limits.shared_bytes_per_block);
  EXPECT_TRUE(launched.ok()) << launched.error();
  device_->synchronize(nullptr);
}

TEST_F(CudaDeviceTest, RefusedLaunchDoesNotStick) {
  const Buffer buffer = floats(1000);
  const int too_much_shared = device_->info().limits.shared_bytes_per_block + 1;
  struct Case {
    int threads, shared_bytes;
  };
  for (const Case c : {Case{2048, 0}, Case{0, 0}, Case{kThreads, too_much_shared}}) {
    const auto launched = launch_fill(buffer.as<float>(), 1000, 1, c.threads, c.shared_bytes);
    ASSERT_FALSE(launched.ok()) << c.threads << " threads, " << c.shared_bytes << " bytes";
    EXPECT_NE(launched.error().find(std::to_string(c.threads) + " threads"), std::string::npos) << launched.error();
    expect_healthy();
  }
}

TEST_F(CudaDeviceTest, TooMuchMemoryIsAFailure) {
  const auto buffer = device_->allocate(size_t{1} << 50);
  ASSERT_FALSE(buffer.ok());
  EXPECT_NE(buffer.error().find("not enough memory"), std::string::npos) << buffer.error();
  expect_healthy();
  EXPECT_EQ(device_->allocate(0).value_or_throw().bytes(), 0u);
}

TEST_F(CudaDeviceTest, FreesWhatItAllocates) {
  const int64_t before = device_->free_bytes();
  for (int i = 0; i < 20; ++i) {
    const Buffer buffer = device_->allocate(size_t{1} << 28).value_or_throw();
    EXPECT_LT(device_->free_bytes(), before);
  }
  EXPECT_GE(device_->free_bytes(), before - (1 << 26));
}

TEST_F(CudaDeviceTest, CallersDeviceStaysCurrent) {
  const int last = cuda_device_count(nullptr) - 1;
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  const std::unique_ptr<Device> other = open_cuda_device(last).value_or_throw();
  const std::shared_ptr<Kernel> kernel = other->build(fill_spec()).value_or_throw();
  const Buffer buffer = other->allocate(4000).value_or_throw();
  FillArgs args{buffer.as<float>(), 1000, 1};
  ASSERT_TRUE(other->launch(*kernel, {4, 1, 1}, kThreads, 0, &args, sizeof args, nullptr).ok());
  other->set_words(buffer.as(), 0, 10, nullptr);
  other->synchronize(nullptr);
  int current = -1;
  ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 0);
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, buffer.as()), cudaSuccess);
  EXPECT_EQ(attributes.device, last);
}

// A thread that has not used CUDA yet gets no context from us either.
TEST_F(CudaDeviceTest, ThreadWithoutContextStaysSo) {
  void* address = nullptr;
  ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &address, 12000, cudaEnableDefault, nullptr), cudaSuccess);
  auto* const get_current = reinterpret_cast<int (*)(void**)>(address);
  void* context = &address;
  std::thread([&] {
    const Buffer buffer = floats(1000);
    device_->set_words(buffer.as(), 0, 1000, nullptr);
    fill(buffer, 3);
    device_->synchronize(nullptr);
    get_current(&context);
  }).join();
  EXPECT_EQ(context, nullptr);
}

TEST_F(CudaDeviceTest, BuildsAndAllocatesWhileAStreamIsCaptured) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  {
    const std::shared_ptr<Kernel> reduce = device_->build(reduce_spec()).value_or_throw();
    const Buffer freed_at_once = floats(1000);
  }
  const Buffer buffer = floats(1000);
  device_->set_words(buffer.as(), 0, 1000, stream);
  fill(buffer, 5, stream);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  size_t nodes = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 2u);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

// ---- measure ----

class CudaMeasureTest : public CudaDeviceTest {
 protected:
  // Fills `count` floats `times` times per execution, and keeps the rotations it saw.
  Workload fill_workload(const std::string& label, const Buffer& buffer, int64_t count, int times) {
    return {label,
            [this, buffer, count, times, label](Stream stream, int rotation) {
              seen_[label].insert(rotation);
              for (int i = 0; i < times; ++i)
                launch_fill(buffer.as<float>(), count, 1, kThreads, 0, stream).value_or_throw();
            },
            0};
  }

  static double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
  }

  static void expect_sane(const std::vector<double>& times_us, int rounds) {
    ASSERT_EQ(times_us.size(), static_cast<size_t>(rounds));
    for (const double time_us : times_us) {
      EXPECT_TRUE(std::isfinite(time_us));
      EXPECT_GT(time_us, 0.1);
    }
  }

  std::map<std::string, std::set<int>> seen_;
};

TEST_F(CudaMeasureTest, TimesGrowWithTheWork) {
  constexpr int64_t kCount = 64 << 20;
  const Buffer buffer = floats(kCount);
  for (const bool use_graph : {false, true}) {
    SCOPED_TRACE(use_graph ? "graph" : "loop");
    MeasurePlan plan;
    plan.rounds = 7, plan.min_sample_us = 300, plan.use_graph = use_graph;
    const auto times =
        device_->measure({fill_workload("small", buffer, 1 << 16, 1), fill_workload("twice", buffer, 1 << 16, 2),
                          fill_workload("large", buffer, kCount, 1)},
                         plan);
    ASSERT_EQ(times.size(), 3u);
    for (const auto& times_us : times) expect_sane(times_us, plan.rounds);
    const double ratio = median(times[1]) / median(times[0]);
    EXPECT_GT(ratio, 1.3);
    EXPECT_LT(ratio, 3.0);
    EXPECT_GT(median(times[2]), 3 * median(times[0]));
    RecordProperty(use_graph ? "small_graph_us" : "small_loop_us", std::to_string(median(times[0])));
  }
  EXPECT_LE(median(device_->measure({fill_workload("small", buffer, 1 << 16, 1)}, {5, 300, true, 1})[0]), 10)
      << "an execution of a few microseconds, without launch gaps";
}

// Writes 256 MiB; no GPU has more than 20 TB/s, and none that we support less than 50 GB/s.
TEST_F(CudaMeasureTest, UnitIsMicroseconds) {
  constexpr int64_t kCount = 64 << 20;
  const Buffer buffer = floats(kCount);
  const double time_us = median(device_->measure({fill_workload("large", buffer, kCount, 1)}, {3, 0, true, 1})[0]);
  EXPECT_GT(time_us, 4.0 * kCount / 20e6);
  EXPECT_LT(time_us, 4.0 * kCount / 50e3);
}

TEST_F(CudaMeasureTest, RotatesOperands) {
  const Buffer buffer = floats(1000);
  for (const bool use_graph : {false, true}) {
    seen_.clear();
    device_->measure({fill_workload("a", buffer, 1000, 1)}, {3, 200, use_graph, 1});
    const std::set<int>& seen = seen_["a"];
    EXPECT_GE(seen.size(), 16u);
    EXPECT_EQ(*seen.begin(), 0);
    EXPECT_EQ(*seen.rbegin(), static_cast<int>(seen.size()) - 1) << "no rotation is left out";
  }
}

TEST_F(CudaMeasureTest, FallsBackWhereCaptureIsImpossible) {
  const Buffer buffer = floats(1000);
  Workload synchronises = fill_workload("a", buffer, 1000, 1);
  synchronises.enqueue = [this, inner = synchronises.enqueue](Stream stream, int rotation) {
    inner(stream, rotation);
    device_->synchronize(stream);
  };
  const auto times = device_->measure({synchronises, fill_workload("b", buffer, 1000, 1)}, {3, 100, true, 1});
  expect_sane(times[0], 3);
  expect_sane(times[1], 3);
  expect_healthy();
}

TEST_F(CudaMeasureTest, RefusedLaunchIsThrownAndForgotten) {
  const Buffer buffer = floats(1000);
  const Workload refused{
      "refused", [&](Stream stream, int) { launch_fill(buffer.as<float>(), 1000, 1, 2048, 0, stream).value_or_throw(); }, 0};
  EXPECT_THROW(device_->measure({fill_workload("a", buffer, 1000, 1), refused}, {3, 100, true, 1}), Error);
  expect_sane(device_->measure({fill_workload("a", buffer, 1000, 1)}, {3, 100, true, 1})[0], 3);
  expect_healthy();
}

TEST_F(CudaMeasureTest, NothingToMeasure) { EXPECT_TRUE(device_->measure({}, {}).empty()); }

// In a process of its own, since the GPU is lost to it afterwards.
TEST_F(CudaMeasureTest, IllegalAddressIsAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr int kCaught = 7;
  const auto fault = [this] {
    const Workload bad{
        "bad", [this](Stream stream, int) { launch_fill(nullptr, 1000, 1, kThreads, 0, stream).value_or_throw(); }, 0};
    try {
      device_->measure({bad}, {});
    } catch (const Error& error) {
      const std::string text = error.what();
      std::_Exit(text.find("bad") != std::string::npos && text.find("llegal") != std::string::npos ? kCaught : 1);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(fault(), testing::ExitedWithCode(kCaught), "");
}

}  // namespace
}  // namespace gemm
