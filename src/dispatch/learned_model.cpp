#include "dispatch/learned_model.h"

#include <algorithm>

#include "dispatch/choice_inputs.h"
#include "dispatch/cost_families.h"

namespace gemm {
namespace {

constexpr double kCublasLaunchUs = 2.2;
constexpr float kMostLogRatio = 2;  // far from all that was measured the networks may say anything

const NetworkFunctions& layers() {
  static const NetworkFunctions any_cpu = network_functions<4>();
#if defined(GEMM_WIDE_VECTORS)
  static const NetworkFunctions best = __builtin_cpu_supports("avx2") ? wide_network_functions() : any_cpu;
  return best;
#else
  return any_cpu;
#endif
}

float is(bool condition) { return condition ? 1.F : 0.F; }

ChoiceInputs as_floats(const std::array<double, kChoiceInputs>& inputs) {
  ChoiceInputs floats;
  for (size_t i = 0; i < inputs.size(); ++i) floats[i] = static_cast<float>(inputs[i]);
  return floats;
}

float log2_input(double x) { return static_cast<float>(coarse_log2(x)); }

}  // namespace

NonZeroInputs::NonZeroInputs(const ProblemInputs& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    numbers[count] = i;
    values[count] = inputs[i];
    count += inputs[i] != 0 ? 1 : 0;
  }
}

FirstLayer TimeNetwork::of_problem(const NonZeroInputs& inputs) const {
  FirstLayer sums{};
  layers().add_problem(problem.front().data(), inputs.numbers.data(), inputs.values.data(), inputs.count, sums.data());
  return sums;
}

void TimeNetwork::log_ratios(std::span<const NetworkQuestion> questions, float* results) const {
  static_assert(NetworkQuestion::kStride == kKernelsAtOnce && NetworkWeights::kInputs == kChoiceInputs &&
                NetworkWeights::kFirst == kFirstLayer && NetworkWeights::kSecond == kSecondLayer);
  const NetworkWeights weights{first_layer,        choice.front().data(), second.front().data(),
                               second_bias.data(), last.data(),           last_bias};
  layers().ask(weights, questions.data(), questions.size(), results);
  for (float& result : std::span(results, questions.size())) result = std::clamp(result, -kMostLogRatio, kMostLogRatio);
}

ProblemInputs problem_inputs(const CostProblem& p) {
  const Problem& sizes = p.problem;
  ProblemInputs inputs = {log2_input(p.m),      log2_input(p.n),      log2_input(p.k),      log2_input(p.batch),
                          is(sizes.m % 4 == 0), is(sizes.m % 2 == 0), is(sizes.n % 4 == 0), is(sizes.k % 4 == 0)};
  const int classes[][2] = {{4, p.ops}, {3, p.vec_a}, {3, p.vec_b}, {3, p.cut_a}, {3, p.cut_b}};  // of how many, which
  size_t place = 8;
  for (const auto& [count, which] : classes) {
    inputs[place + static_cast<size_t>(which)] = 1;
    place += static_cast<size_t>(count);
  }
  return inputs;
}

ChoiceInputs choice_inputs(const KernelCost& kernel, const CostProblem& p, int split_k, Reduction reduction,
                           const CostTerms& terms) {
  const cost::KernelNumbers<double>& k = kernel.numbers;
  std::array<double, kChoiceInputs> inputs;
  write_choice_inputs<double>(
      {k.BM, k.BN, k.BK, k.by_BM, k.by_BN, terms, terms.us(), static_cast<double>(split_k), static_cast<double>(reduction)},
      p, k.sm_count, inputs.data());
  return as_floats(inputs);
}

void choice_inputs(const ChoiceRows& rows, const CostProblem& p, double sm_count, ChoiceInputRows& inputs) {
  using N = Lanes<4>;
  static_assert(sizeof(ChoiceRows) == sizeof(ChoiceNumbers<N>) && sizeof(ChoiceInputRows) == kChoiceInputs * sizeof(N));
  std::array<N, kChoiceInputs> lanes;
  write_choice_inputs(laid_out_as<ChoiceNumbers<N>>(&rows), p, sm_count, lanes.data());
  for (size_t i = 0; i < inputs.size(); ++i) lanes[i].store(inputs[i].data());
}

CostTerms cublas_terms(const DeviceInfo& device, const CostProblem& p) {
  CostTerms terms;
  terms.fixed = kCublasLaunchUs;
  terms.compute = p.m * p.n * p.k * p.batch / (cost::kLanesPerSm * device.sm_count * cost::clock_mhz(device));
  terms.memory = p.bytes / (cost::kDramBytesPerUsPerSm * device.sm_count);
  return terms;
}

ChoiceInputs cublas_inputs(const CostTerms& terms) {
  std::array<double, kChoiceInputs> inputs{};
  write_shares(terms, terms.us(), inputs.data() + kFirstShare);
  return as_floats(inputs);
}

}  // namespace gemm
