#include "dispatch/calibrated_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "dispatch/cost_families.h"

namespace gemm {
namespace {

// On 250 random problems of an H200, fitted on 300 others: widths of 0.7 and 1.5 and half or twice the class distance made
// the choice 0.5 to 1 % slower.
constexpr float kWidth = 1.0F;          // octaves: weight exp(-1/2 (distance / width)^2)
constexpr float kFarthest = 2.8F;       // octaves; the weight is below 0.02 there
constexpr float kClassDistance = 1.0F;  // octaves for an operand that is stored otherwise, or of single floats
constexpr float kPull = 0.3F;           // weight of the 0 that the mean is drawn to

constexpr double kCublasLaunchUs = 2.2;

size_t operand_class(bool transposed, int cut) { return (transposed ? 3u : 0u) + static_cast<size_t>(cut); }

// log2 to within 0.01, far below what the width resolves: a choice takes microseconds, and std::log2 a share of one.
float coarse_log2(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const auto exponent = static_cast<int>(bits >> 52) - 1023;
  const double mantissa = std::bit_cast<double>((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  return static_cast<float>(exponent + (-1.0 / 3 * mantissa + 2) * mantissa - 5.0 / 3);
}

}  // namespace

ProblemClass::ProblemClass(const CostProblem& p)
    : a(operand_class((p.ops & 2) != 0, p.cut_a)),
      b(operand_class((p.ops & 1) != 0, p.cut_b)),
      both(p.ops == 3),
      rows_c(p.problem.m % 4 == 0   ? 2
             : p.problem.m % 2 == 0 ? 1
                                    : 0) {}

std::array<FactorPlaces, 5> factor_places(const ProblemClass& p, Reduction kind) {
  using F = CostFactors;
  constexpr size_t none = F::kCount;
  return {{{&CostTerms::fixed, {F::fixed, F::fixed_rows + p.rows_c, none, none}},
           {&CostTerms::compute, {F::compute, F::compute_a + p.a, F::compute_b + p.b, p.both ? F::compute_both : none}},
           {&CostTerms::memory, {F::memory, F::memory_a + p.a, F::memory_b + p.b, F::memory_rows + p.rows_c}},
           {&CostTerms::latency, {F::latency, F::latency_a + p.a, F::latency_b + p.b, none}},
           {&CostTerms::reduction, {F::reduction + static_cast<size_t>(kind), none, none, none}}}};
}

CostTerms CostFactors::apply(const CostTerms& t, const ProblemClass& p, Reduction kind) const {
  const auto& v = values;
  return {t.fixed * v[fixed] * v[fixed_rows + p.rows_c],
          t.compute * v[compute] * v[compute_a + p.a] * v[compute_b + p.b] * (p.both ? v[compute_both] : 1),
          t.memory * v[memory] * v[memory_a + p.a] * v[memory_b + p.b] * v[memory_rows + p.rows_c],
          t.latency * v[latency] * v[latency_a + p.a] * v[latency_b + p.b],
          t.reduction * v[reduction + static_cast<size_t>(kind)]};
}

CostTerms cublas_terms(const DeviceInfo& device, const CostProblem& p) {
  CostTerms terms;
  terms.fixed = kCublasLaunchUs;
  terms.compute = p.m * p.n * p.k * p.batch / (cost::kLanesPerSm * device.sm_count * cost::clock_mhz(device));
  terms.memory = p.bytes / (cost::kDramBytesPerUsPerSm * device.sm_count);
  return terms;
}

Neighbourhood::Coordinates Neighbourhood::coordinates(const CostProblem& p) {
  return {coarse_log2(p.m),
          coarse_log2(p.n),
          coarse_log2(p.k),
          coarse_log2(p.batch),
          (p.ops & 2) != 0 ? 1.F : 0.F,
          (p.ops & 1) != 0 ? 1.F : 0.F,
          static_cast<float>(p.cut_a) / 2,
          static_cast<float>(p.cut_b) / 2};
}

Neighbourhood::Neighbourhood(const std::vector<MeasuredProblem>& measured, size_t columns)
    : count_(measured.size()), columns_(columns) {
  for (const MeasuredProblem& one : measured) {
    const Coordinates at = coordinates(CostProblem(one.problem));
    for (size_t i = 0; i < at.size(); ++i) coordinates_[i].push_back(at[i]);
    for (const float ratio : one.log_ratios) {
      ratios_.push_back(std::isnan(ratio) ? 0 : ratio);
      known_.push_back(std::isnan(ratio) ? 0 : 1);
    }
  }
}

void Neighbourhood::add(size_t measured, float weight, std::span<float> sums, std::span<float> weights) const {
  const float* __restrict ratios = ratios_.data() + measured * columns_;
  const float* __restrict known = known_.data() + measured * columns_;
  float* __restrict sum = sums.data();
  float* __restrict total = weights.data();
  for (size_t i = 0; i < columns_; ++i) sum[i] += weight * ratios[i];
  for (size_t i = 0; i < columns_; ++i) total[i] += weight * known[i];
}

void Neighbourhood::mean_log_ratios(const CostProblem& problem, std::span<float> means) const {
  constexpr size_t kStride = 64;
  const Coordinates at = coordinates(problem);
  std::array<float, kMostColumns> weights;
  weights.fill(kPull);
  std::fill(means.begin(), means.end(), 0.F);
  std::array<float, kStride> squares, classes;
  for (size_t first = 0; first < count_; first += kStride) {
    const size_t count = std::min(kStride, count_ - first);
    squares.fill(0);
    classes.fill(0);
    for (size_t c = 0; c < kSizes; ++c) {
      const float* column = coordinates_[c].data() + first;
      for (size_t i = 0; i < count; ++i) squares[i] += (column[i] - at[c]) * (column[i] - at[c]);
    }
    for (size_t c = kSizes; c < kSizes + kClasses; ++c) {
      const float* column = coordinates_[c].data() + first;
      for (size_t i = 0; i < count; ++i) classes[i] += std::fabs(column[i] - at[c]);
    }
    for (size_t i = 0; i < count; ++i) squares[i] += classes[i] * classes[i] * (kClassDistance * kClassDistance);
    for (size_t i = 0; i < count; ++i)
      if (squares[i] < kFarthest * kFarthest)
        add(first + i, std::exp(squares[i] * (-0.5F / (kWidth * kWidth))), means, weights);
  }
  for (size_t i = 0; i < columns_; ++i) means[i] /= weights[i];
}

}  // namespace gemm
