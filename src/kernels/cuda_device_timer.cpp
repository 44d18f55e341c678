#include "kernels/cuda_device_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/cuda_context.h"

namespace gemm {
namespace {

constexpr int kMaxRepeats = 1000;
constexpr double kGraphBelow_us = 50;   // longer executions hide their launch gaps
constexpr double kHoldBelow_us = 2000;  // in longer samples a launch latency of some microseconds does not matter
constexpr double kClockStep_us = 0.5;   // resolution of events
constexpr auto kLongestHold = std::chrono::milliseconds(1);

int repeats_for(double execution_us, const MeasurePlan& plan) {
  const double repeats = std::ceil(plan.min_sample_us / std::max(execution_us, kClockStep_us));
  return static_cast<int>(std::clamp(repeats, 1.0, static_cast<double>(kMaxRepeats)));
}

// Runs on the stream and keeps what was enqueued behind it waiting. It gives up after a while, so that enqueueing more than
// the stream's queue holds, or tools that wait for every launch, cannot block.
void wait_until_released(void* released) {
  const auto give_up = std::chrono::steady_clock::now() + kLongestHold;
  const auto* flag = static_cast<const std::atomic<bool>*>(released);
  while (!flag->load(std::memory_order_acquire) && std::chrono::steady_clock::now() < give_up) {
  }
}

}  // namespace

CudaDeviceTimer::CudaDeviceTimer() {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating the stream for timing");
  check(cudaEventCreate(&start_), "creating an event");
  check(cudaEventCreate(&stop_), "creating an event");
}

CudaDeviceTimer::~CudaDeviceTimer() {
  cudaStreamSynchronize(stream_);
  cudaEventDestroy(start_);
  cudaEventDestroy(stop_);
  cudaStreamDestroy(stream_);
  cudaGetLastError();
}

std::vector<std::vector<double>> CudaDeviceTimer::measure(const std::vector<Workload>& workloads, const MeasurePlan& plan) {
  check(cudaDeviceSynchronize(), "work before the timing");
  std::vector<Sampler> samplers;
  samplers.reserve(workloads.size());
  for (const Workload& workload : workloads) samplers.push_back(prepare(workload, plan));

  std::vector<std::vector<double>> times_us(workloads.size());
  for (int round = 0; round < plan.rounds; ++round)
    for (size_t step = 0; step < samplers.size(); ++step) {
      // There and back, so that no workload always follows the same one and slow drifts cancel.
      const size_t i = round % 2 == 0 ? step : samplers.size() - 1 - step;
      if (workloads[i].on_sample) workloads[i].on_sample();
      times_us[i].push_back(sample_us(samplers[i]) / samplers[i].repeats);
    }
  return times_us;
}

CudaDeviceTimer::Sampler CudaDeviceTimer::prepare(const Workload& workload, const MeasurePlan& plan) {
  Sampler sampler;
  sampler.workload = &workload;
  if (workload.on_sample) workload.on_sample();
  for (int run = 0; run < std::max(plan.warmup, 1); ++run) enqueue(sampler);
  check(cudaStreamSynchronize(stream_), workload.label);

  const double execution_us = sample_us(sampler);
  sampler.repeats = repeats_for(execution_us, plan);
  sampler.expected_us = execution_us * sampler.repeats;
  // A single execution has no gaps to take out.
  if (plan.use_graph && execution_us < kGraphBelow_us && sampler.repeats > 1) prepare_graph(sampler, plan);
  return sampler;
}

// In a graph an execution is shorter than in the loop that the repeats were estimated with; so they are chosen again.
void CudaDeviceTimer::prepare_graph(Sampler& sampler, const MeasurePlan& plan) {
  sampler.graph = capture(*sampler.workload, sampler.repeats);
  if (!sampler.graph) return;
  sampler.expected_us = sample_us(sampler);
  const double execution_us = sampler.expected_us / sampler.repeats;
  const int repeats = repeats_for(execution_us, plan);
  if (repeats <= sampler.repeats) return;
  if (Graph longer = capture(*sampler.workload, repeats)) {
    sampler.graph = std::move(longer);
    sampler.repeats = repeats;
    sampler.expected_us = sample_us(sampler);
  }
}

// Null where the workload cannot be captured (some library calls cannot); the reason, if it is a fault of the workload,
// shows again when it runs in the plain loop.
CudaDeviceTimer::Graph CudaDeviceTimer::capture(const Workload& workload, int repeats) {
  if (cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  bool complete = true;
  try {
    for (int rotation = 0; rotation < repeats; ++rotation) workload.enqueue(stream_, rotation);
  } catch (const std::exception&) {
    complete = false;
  }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  complete = cudaStreamEndCapture(stream_, &graph) == cudaSuccess && graph && complete &&
             cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess;
  if (graph) cudaGraphDestroy(graph);
  cudaGetLastError();
  return Graph(complete ? executable : nullptr);
}

double CudaDeviceTimer::sample_us(Sampler& sampler) {
  // Without this the time between the first event and the arrival of the first launch would count.
  if (sampler.expected_us < kHoldBelow_us) hold_stream();
  check(cudaEventRecord(start_, stream_), "recording an event");
  enqueue(sampler);
  check(cudaEventRecord(stop_, stream_), "recording an event");
  released_.store(true, std::memory_order_release);

  check(cudaEventSynchronize(stop_), sampler.workload->label);
  float elapsed_ms = 0;
  check(cudaEventElapsedTime(&elapsed_ms, start_, stop_), sampler.workload->label);
  return static_cast<double>(elapsed_ms) * 1000;
}

void CudaDeviceTimer::enqueue(Sampler& sampler) {
  if (sampler.graph) return check(cudaGraphLaunch(sampler.graph.get(), stream_), sampler.workload->label);
  for (int i = 0; i < sampler.repeats; ++i) sampler.workload->enqueue(stream_, sampler.next_rotation++);
}

void CudaDeviceTimer::hold_stream() {
  released_.store(false, std::memory_order_release);
  check(cudaLaunchHostFunc(stream_, wait_until_released, &released_), "holding the stream back");
}

}  // namespace gemm
