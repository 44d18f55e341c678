// Times workloads on a CUDA GPU, in interleaved rounds. Used by the CUDA device only.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/device.h"

namespace gemm {

// Has a stream of its own. The GPU must be current (CurrentContext) in every call, the destructor included; one thread at a
// time.
class CudaDeviceTimer {
 public:
  CudaDeviceTimer();
  ~CudaDeviceTimer();
  CudaDeviceTimer(const CudaDeviceTimer&) = delete;
  CudaDeviceTimer& operator=(const CudaDeviceTimer&) = delete;

  std::vector<std::vector<double>> measure(const std::vector<Workload>& workloads, const MeasurePlan& plan);

 private:
  struct GraphDeleter {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, GraphDeleter>;

  // How samples of one workload are taken.
  struct Sampler {
    const Workload* workload = nullptr;
    int repeats = 1;
    int next_rotation = 0;
    double expected_us = 0;  // of a whole sample
    Graph graph;             // of `repeats` executions; null: they are enqueued one by one
  };

  Sampler prepare(const Workload& workload, const MeasurePlan& plan);
  void prepare_graph(Sampler& sampler, const MeasurePlan& plan);
  Graph capture(const Workload& workload, int repeats);
  double sample_us(Sampler& sampler);  // of a whole sample
  void enqueue(Sampler& sampler);
  void hold_stream();

  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
  std::atomic<bool> released_{true};
};

}  // namespace gemm
