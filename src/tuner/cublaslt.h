// cuBLASLt, opened on first need: the second baseline, the best of its own heuristics' choices for a problem.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/launch.h"
#include "kernels/problem.h"
#include "kernels/result.h"

namespace gemm {

class CublasLt {
 public:
  // Failure: no library, no GPU.
  static Result<std::unique_ptr<CublasLt>> open(Device& device);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  // One algorithm bound to a problem; enqueue() runs it.
  class Algorithm {
   public:
    virtual ~Algorithm() = default;
    virtual Result<bool> enqueue(const Operands& operands, Stream stream) = 0;
    virtual std::string name() const = 0;  // "algorithm 24 tile 20 stages 5 split_k 1"
  };

  // What cublasLtMatmulAlgoGetHeuristic proposes for strict FP32 and kWorkspaceBytes of workspace, best guess first.
  std::vector<std::shared_ptr<Algorithm>> heuristics(const Problem& problem, int most);

  struct State;

 private:
  explicit CublasLt(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace gemm
