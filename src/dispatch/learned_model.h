// What calibration adds to the analytic cost model: how much longer than predicted a choice takes. A few small neural
// networks say so, all the same but for the chance they were fitted with (tuner/model_fit.h); their mean counts. One network
// serves all kernels, which it knows by vectors of their own, so what one of them shows is learned for others like it.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "dispatch/cost_model.h"
#include "dispatch/kernel_search.h"
#include "dispatch/network_layers.h"

namespace gemm {

inline constexpr size_t kProblemInputs = 24, kChoiceInputs = 19;  // docs/table-format.md lists them
inline constexpr size_t kFirstLayer = 64, kSecondLayer = 8;
inline constexpr size_t kOlderFirstLayer = 32;  // of tables until 2026-12-01
using ProblemInputs = std::array<float, kProblemInputs>;
using ChoiceInputs = std::array<float, kChoiceInputs>;
using FirstLayer = std::array<float, kFirstLayer>;
using SecondLayer = std::array<float, kSecondLayer>;

// Most inputs of a problem are zero, for all networks.
struct NonZeroInputs {
  explicit NonZeroInputs(const ProblemInputs& inputs);

  size_t count = 0;
  std::array<size_t, kProblemInputs> numbers;  // of the inputs
  std::array<float, kProblemInputs> values;
};

// first = max(0, traits of the kernel + problem inputs * problem + choice inputs * choice)
// log(measured / predicted) = max(0, second_bias + first * second) * last + last_bias
struct TimeNetwork {
  size_t first_layer = kFirstLayer;  // how many of the first layer's numbers are in use; the others are zero
  std::array<FirstLayer, kProblemInputs> problem{};
  std::array<FirstLayer, kChoiceInputs> choice{};
  std::optional<FirstLayer> cublas;  // its traits, where it was measured
  std::array<SecondLayer, kFirstLayer> second{};
  SecondLayer second_bias{}, last{};
  float last_bias = 0;

  // What the first layer gets from the problem.
  FirstLayer of_problem(const NonZeroInputs& inputs) const;
  void log_ratios(std::span<const NetworkQuestion> questions, float* results) const;
};

struct LearnedModel {
  static constexpr size_t kMostNetworks = 8;
  std::vector<TimeNetwork> networks;
  int problems = 0;  // random ones, that it was fitted on; tuned points not counted
};

ProblemInputs problem_inputs(const CostProblem& problem);

// `terms` are what the cost model says of this choice.
ChoiceInputs choice_inputs(const KernelCost& kernel, const CostProblem& problem, int split_k, Reduction reduction,
                           const CostTerms& terms);

// The same for eight choices of one problem side by side, in floats.
struct ChoiceRows {
  LaneRow BM, BN, BK, by_BM, by_BN;  // of cost::KernelNumbers
  GroupWays ways;
};
using ChoiceInputRows = std::array<LaneRow, kChoiceInputs>;
void choice_inputs(const ChoiceRows& rows, const CostProblem& problem, double sm_count, ChoiceInputRows& inputs);

// cuBLAS as if it were a kernel that reaches the limits of the GPU, of which no tiles are known.
CostTerms cublas_terms(const DeviceInfo& device, const CostProblem& problem);
ChoiceInputs cublas_inputs(const CostTerms& terms);

}  // namespace gemm
