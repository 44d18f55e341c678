// Lower bounds of kernels' times by the cost model, for all kernels of a table at once: which of them are worth a search for
// their best split.
#pragma once

#include <array>
#include <vector>

#include "dispatch/cost_model.h"

namespace gemm {

// Times of kernels for one problem, to be taken least first. Few are, so nothing is sorted: looking through all of them
// takes a few vector instructions, and none of the branches on which a sort waits.
class KernelTimes {
 public:
  static constexpr size_t kMost = 96;  // kernels; a portfolio has 64 (tuner/portfolio.h)

  std::array<float, kMost> us;

  // To be called when `us` is filled in, for so many kernels.
  void begin(size_t count);
  // The number of the next kernel; `count` times at most. Times that agree to 16 bits are taken last number first.
  size_t take();

 private:
  std::array<float, kMost> keys_;  // times with the kernels' numbers in the last bits, endless where they were taken
  size_t count_ = 0;
};

class LeastTimes {
 public:
  // For KernelTimes::kMost kernels at most, which need not outlive this object.
  explicit LeastTimes(const std::vector<KernelCost>& kernels);

  // At most what any split and reduction takes, of the first `count` kernels. Whether they may serve the problem is not
  // asked.
  void of(const CostProblem& problem, size_t count, KernelTimes& times) const;

 private:
  using Row = std::array<float, KernelTimes::kMost>;  // a value for each kernel: loops over them become vector instructions

  double sm_count_ = 1;
  Row inverse_BM_{}, inverse_BN_{}, inverse_BK_{};
  Row fixed_us_{};
  Row latency_us_{}, l2_us_{};  // of a stage; L2 serves all multiprocessors
  // Arithmetic of a stage by load widths (slots_index), without and with the tensor copy engine where a kernel has it.
  std::array<std::array<Row, 36>, 2> stage_us_{};
};

}  // namespace gemm
