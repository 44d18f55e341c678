#include "dispatch/learned_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "dispatch/cost_families.h"

namespace gemm {
namespace {

constexpr double kCublasLaunchUs = 2.2;
constexpr float kMostLogRatio = 2;  // far from all that was measured the networks may say anything

// log2 to within 0.01, far below what matters: std::log2 takes a share of a microsecond.
float coarse_log2(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const auto exponent = static_cast<int>(bits >> 52) - 1023;
  const double mantissa = std::bit_cast<double>((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  return static_cast<float>(exponent + (-1.0 / 3 * mantissa + 2) * mantissa - 5.0 / 3);
}

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

// The parts of a time, as shares of it.
void add_shares(const CostTerms& terms, double us, float* inputs) {
  const double parts[] = {terms.fixed, terms.compute, terms.memory, terms.latency, terms.reduction};
  for (size_t i = 0; i < std::size(parts); ++i) inputs[i] = static_cast<float>(parts[i] / us);
  inputs[std::size(parts)] = coarse_log2(us);
}
constexpr size_t kShares = 5;  // place of the first in the inputs of a choice

}  // namespace

FirstLayer TimeNetwork::of_problem(const ProblemInputs& inputs) const {
  FirstLayer sums{};
  layers().add_problem(problem.front().data(), inputs.data(), kProblemInputs, sums.data());
  return sums;
}

void TimeNetwork::log_ratios(std::span<const NetworkQuestion> questions, float* results) const {
  static_assert(NetworkWeights::kInputs == kChoiceInputs && NetworkWeights::kFirst == kFirstLayer &&
                NetworkWeights::kSecond == kSecondLayer);
  const NetworkWeights weights{choice.front().data(), second.front().data(), second_bias.data(), last.data(), last_bias};
  layers().ask(weights, questions.data(), questions.size(), results);
  for (float& result : std::span(results, questions.size())) result = std::clamp(result, -kMostLogRatio, kMostLogRatio);
}

ProblemInputs problem_inputs(const CostProblem& p) {
  const Problem& sizes = p.problem;
  ProblemInputs inputs = {coarse_log2(p.m),     coarse_log2(p.n),     coarse_log2(p.k),     coarse_log2(p.batch),
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
  const KernelConfig& c = kernel.config;
  const cost::KernelNumbers<double>& numbers = kernel.numbers;
  const double tiles_m = numbers.by_BM.parts(p.m), tiles_n = numbers.by_BN.parts(p.n);
  const double rows = tiles_m * c.BM, columns = tiles_n * c.BN;
  const double tiles = tiles_m * tiles_n * p.batch, blocks = tiles * split_k;
  const double stages = Divisor(static_cast<double>(split_k) * c.BK).parts(p.k);  // of a block
  const double waves = numbers.by_sms.parts(blocks) * numbers.sm_count / blocks;
  ChoiceInputs inputs = {coarse_log2(tiles), coarse_log2(split_k), coarse_log2(stages),
                         coarse_log2(rows * columns / (p.m * p.n)), coarse_log2(waves)};
  add_shares(terms, terms.us(), inputs.data() + kShares);
  size_t place = kShares + 6;
  const float rest[] = {is(rows != p.m),
                        is(columns != p.n),
                        is(stages * c.BK * split_k != p.k),
                        is(reduction == Reduction::kernel),
                        is(reduction == Reduction::stream_k),
                        is(reduction == Reduction::cluster),
                        static_cast<float>((rows - p.m) / c.BM),
                        static_cast<float>((columns - p.n) / c.BN)};
  for (const float input : rest) inputs[place++] = input;
  return inputs;
}

CostTerms cublas_terms(const DeviceInfo& device, const CostProblem& p) {
  CostTerms terms;
  terms.fixed = kCublasLaunchUs;
  terms.compute = p.m * p.n * p.k * p.batch / (cost::kLanesPerSm * device.sm_count * cost::clock_mhz(device));
  terms.memory = p.bytes / (cost::kDramBytesPerUsPerSm * device.sm_count);
  return terms;
}

ChoiceInputs cublas_inputs(const CostTerms& terms) {
  ChoiceInputs inputs{};
  add_shares(terms, terms.us(), inputs.data() + kShares);
  return inputs;
}

}  // namespace gemm
