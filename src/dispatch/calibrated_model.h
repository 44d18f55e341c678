// What calibration adds to the analytic cost model: for each kernel of the portfolio, and for cuBLAS, factors on the parts
// of a predicted time, fitted by gemm-tune (tuner/model_fit.h), and what is left over on measured problems near by.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "dispatch/cost_model.h"

namespace gemm {

// What the factors depend on beside the kernel.
struct ProblemClass {
  explicit ProblemClass(const CostProblem& problem);
  size_t a, b;    // 0 to 5: not transposed or transposed, times single floats, pairs or quads
  bool both;      // transposed
  size_t rows_c;  // 0 to 2: rows of C are odd, even, or a multiple of four, which decides how C is stored
};

// Factors on the parts of a time, 1 where nothing was learned. They multiply: compute * compute_a * compute_b * …
struct CostFactors {
  static constexpr size_t kCount = 51;
  std::array<double, kCount> values;

  CostFactors() { values.fill(1); }
  // Places in `values`. Those of operands have one value for each class of the operand.
  enum Place : size_t {
    fixed = 0,
    compute = 1,
    memory = 2,
    latency = 3,
    reduction = 4,  // by Reduction: 4 values
    compute_a = 8,
    compute_b = 14,
    memory_a = 20,
    memory_b = 26,
    latency_a = 32,
    latency_b = 38,
    compute_both = 44,
    fixed_rows = 45,
    memory_rows = 48,
  };

  CostTerms apply(const CostTerms& terms, const ProblemClass& problem, Reduction reduction_kind) const;
};

// The part of a time, and the places of its factors, up to four: for fitting. A place that is kCount is none.
struct FactorPlaces {
  double CostTerms::*term;
  std::array<size_t, 4> places;
};
std::array<FactorPlaces, 5> factor_places(const ProblemClass& problem, Reduction reduction);

// cuBLAS as if it were a kernel that reaches the limits of the GPU.
CostTerms cublas_terms(const DeviceInfo& device, const CostProblem& problem);

// A measured problem: log(measured / predicted) of each kernel of the portfolio in its order, and of cuBLAS as the last; NaN
// where it was not measured.
struct MeasuredProblem {
  Problem problem;
  std::vector<float> log_ratios;
};

// What the model gets wrong near a problem, by measured ones.
class Neighbourhood {
 public:
  // `columns` log ratios of each measured problem.
  Neighbourhood(const std::vector<MeasuredProblem>& measured, size_t columns);

  // For each column the mean of the neighbours' log ratios, weighted by how near they are in log2 of the sizes and in the
  // classes of the operands, and drawn towards 0 where there are few. No allocation.
  void mean_log_ratios(const CostProblem& problem, std::span<float> means) const;

  static constexpr size_t kMostColumns = 96;

 private:
  static constexpr size_t kSizes = 4, kClasses = 4;
  using Coordinates = std::array<float, kSizes + kClasses>;
  static Coordinates coordinates(const CostProblem& problem);
  void add(size_t measured, float weight, std::span<float> sums, std::span<float> weights) const;

  size_t count_, columns_;
  std::array<std::vector<float>, kSizes + kClasses> coordinates_;  // of each measured problem
  std::vector<float> ratios_, known_;                              // by problem and column; 0 and 0 where not measured
};

}  // namespace gemm
