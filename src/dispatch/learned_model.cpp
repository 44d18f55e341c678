#include "dispatch/learned_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "dispatch/cost_families.h"

namespace gemm {
namespace {

// Vectors that any x86-64 CPU has: a choice takes microseconds, most of them here.
constexpr size_t kLanes = 4;
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));

template <size_t Size>
Lanes lanes(const std::array<float, Size>& layer, size_t which) {
  Lanes lanes;
  std::memcpy(&lanes, layer.data() + which * kLanes, sizeof lanes);
  return lanes;
}

constexpr double kCublasLaunchUs = 2.2;
constexpr float kMostLogRatio = 2;  // far from all that was measured the networks may say anything

// log2 to within 0.01, far below what matters: std::log2 takes a share of a microsecond.
float coarse_log2(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const auto exponent = static_cast<int>(bits >> 52) - 1023;
  const double mantissa = std::bit_cast<double>((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  return static_cast<float>(exponent + (-1.0 / 3 * mantissa + 2) * mantissa - 5.0 / 3);
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
  for (size_t j = 0; j < kProblemInputs; ++j)
    for (size_t i = 0; i < kFirstLayer; ++i) sums[i] += inputs[j] * problem[j][i];
  return sums;
}

float TimeNetwork::log_ratio(const FirstLayer& of_problem, const FirstLayer& traits, const ChoiceInputs& inputs) const {
  constexpr size_t kFirst = kFirstLayer / kLanes, kSecond = kSecondLayer / kLanes;
  std::array<Lanes, kFirst> first;
  for (size_t i = 0; i < kFirst; ++i) first[i] = lanes(of_problem, i) + lanes(traits, i);
  // Half of the sums at a time stay in registers.
  for (size_t half = 0; half < kFirst; half += kFirst / 2)
    for (size_t j = 0; j < kChoiceInputs; ++j)
      for (size_t i = half; i < half + kFirst / 2; ++i) first[i] += inputs[j] * lanes(choice[j], i);
  FirstLayer positive;
  std::memcpy(positive.data(), first.data(), sizeof positive);
  for (float& x : positive) x = x > 0 ? x : 0;
  // Even and odd ones have sums of their own, so that these wait less for each other.
  std::array<Lanes, kSecond> even, odd{};
  for (size_t i = 0; i < kSecond; ++i) even[i] = lanes(second_bias, i);
  for (size_t j = 0; j < kFirstLayer; j += 2)
    for (size_t i = 0; i < kSecond; ++i) {
      even[i] += positive[j] * lanes(second[j], i);
      odd[i] += positive[j + 1] * lanes(second[j + 1], i);
    }
  float result = last_bias;
  for (size_t i = 0; i < kSecondLayer; ++i) {
    const float sum = even[i / kLanes][i % kLanes] + odd[i / kLanes][i % kLanes];
    result += (sum > 0 ? sum : 0) * last[i];
  }
  return std::clamp(result, -kMostLogRatio, kMostLogRatio);
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

ChoiceInputs choice_inputs(const KernelConfig& c, double sm_count, const CostProblem& p, int split_k, Reduction reduction,
                           const CostTerms& terms) {
  const cost::Geometry g = cost::geometry_of(c, p, split_k);
  const double rows = cost::ceil_div(p.m, c.BM) * c.BM, columns = cost::ceil_div(p.n, c.BN) * c.BN;
  const double waves = g.blocks / sm_count;
  ChoiceInputs inputs = {coarse_log2(g.tiles), coarse_log2(split_k), coarse_log2(g.stages),
                         coarse_log2(rows * columns / (p.m * p.n)), coarse_log2(cost::ceil_div(g.blocks, sm_count) / waves)};
  add_shares(terms, terms.us(), inputs.data() + kShares);
  size_t place = kShares + 6;
  const float rest[] = {is(rows != p.m),
                        is(columns != p.n),
                        is(g.stages * c.BK * split_k != p.k),
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
