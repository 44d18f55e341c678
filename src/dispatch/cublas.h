// cuBLAS, opened on first need: the tuner's baseline, and what dispatch falls back to.
#pragma once

#include <memory>
#include <string>

#include "kernels/device.h"
#include "kernels/launch.h"
#include "kernels/problem.h"
#include "kernels/result.h"

namespace gemm {

// One cuBLAS handle of one GPU, in strict FP32 (its default math mode: no TF32). Thread-safe: calls are serialised. The
// device must outlive it.
class Cublas {
 public:
  // Opens the library and creates a handle on `device`. Failure: no library, one without 64-bit entry points (older than
  // CUDA 12), no GPU.
  static Result<std::unique_ptr<Cublas>> open(Device& device);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // Device memory that cuBLAS may use for one call; it belongs to the call's stream.
  struct Workspace {
    void* data = nullptr;
    size_t bytes = 0;
  };
  // Enqueues the product on `stream`: cublasSgemm, or for a batch cublasSgemmStridedBatched or, of pointer arrays,
  // cublasSgemmBatched, as a user would call them.
  // Without a workspace cuBLAS takes its own; while a stream is captured that means allocations inside the graph, which cost
  // time in every replay.
  Result<bool> sgemm(const Problem& problem, const Operands& operands, Stream stream, Workspace workspace);

  std::string version() const;  // "13.1.0"
  std::string path() const;     // of the library file

 private:
  struct State;
  explicit Cublas(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gemm
