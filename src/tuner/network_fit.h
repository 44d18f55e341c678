// Fits one network of the learned model by gradient descent. See model_fit.h for what it is fitted to.
#pragma once

#include <cstdint>
#include <vector>

#include "dispatch/learned_model.h"

namespace gemm {

// What the network is told of a kernel from the start: sizes and load path. What these do not tell it learns for each
// kernel.
inline constexpr size_t kKernelInputs = 15;
using KernelInputs = std::array<float, kKernelInputs>;

// A measured choice. All inputs are standardised: mean 0, variance 1.
struct FitRow {
  size_t kernel;
  ChoiceInputs inputs;
  float log_ratio;  // log(measured / predicted by the cost model)
  float weight;
};

struct FitProblem {
  ProblemInputs inputs;
  std::vector<FitRow> rows;
};

struct FittedNetwork {
  TimeNetwork network;             // without cuBLAS's traits
  std::vector<FirstLayer> traits;  // of each kernel
};

FittedNetwork fit_network(const std::vector<FitProblem>& problems, const std::vector<KernelInputs>& kernels, uint64_t seed);

}  // namespace gemm
