// The analytic model of a kernel's time. The tuner ranks candidates by it before anything is compiled, where it only has to
// keep the good ones in; the selector, with corrections that were learned (learned_model.h), chooses by it for
// problems that nobody tuned. docs/tuning.md states it in words.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dispatch/cost_numbers.h"
#include "kernels/device.h"
#include "kernels/launch.h"

namespace gemm {

// What the model looks at in a problem, worked out once for all kernels. Leading dimensions and strides count, pointers are
// taken as aligned.
struct CostProblem {
  explicit CostProblem(const Problem& problem);

  Problem problem;
  double m, n, k, batch;
  double bytes, output_bytes;
  int ops;           // 2 for a transposed A, plus 1 for a transposed B
  int vec_a, vec_b;  // 0, 1 or 2: single floats, pairs or quads, as leading dimensions and strides allow
  int cut_a, cut_b;  // the same for loads that the last row must not cut
};

using CostTerms = cost::Terms<double>;
using Divisor = cost::DivisorOf<double>;

// Which formula says what a kernel takes.
enum class Formula : unsigned char { tile, specialized, stream, batch };
Formula formula_of(const KernelConfig& config);

// The ways to load and store that a kernel may meet: ops, widths of A and B, and whether both are aligned for the tensor
// copy engine.
inline constexpr size_t kLoads = 2 * 36;
inline size_t loads_index(int ops, int a, int b, bool aligned) {
  const int number = (aligned ? 36 : 0) + ops * 9 + a * 3 + b;
  return static_cast<size_t>(number);
}
// Persistent blocks copy singly what is not aligned, and cut nothing.
inline size_t loads_index(Formula formula, const CostProblem& p) {
  const bool is_cut = formula != Formula::specialized;
  return loads_index(p.ops, is_cut ? p.cut_a : p.vec_a, is_cut ? p.cut_b : p.vec_b, p.vec_a == 2 && p.vec_b == 2);
}

// What the model needs of a configuration on a device, whatever the problem.
struct KernelCost {
  KernelCost(const KernelConfig& config, const DeviceInfo& device);

  KernelConfig config;
  Formula formula;
  cost::KernelNumbers<double> numbers;
  std::array<cost::LoadNumbers<double>, kLoads> loads{};  // by loads_index
};

namespace cost {

// Kernels' cost of one problem: what does not depend on the split of k is worked out once. Kernel and problem must outlive
// it.
template <class N>
struct Product {
  Product(Formula its_formula, const KernelNumbers<N>& its_kernel, const LoadNumbers<N>& its_loads, const CostProblem& p)
      : formula(its_formula),
        kernel(its_kernel),
        loads(its_loads),
        problem(p),
        tiles_m(kernel.by_BM.parts(p.m)),
        tiles_n(kernel.by_BN.parts(p.n)),
        tiles(tiles_m * tiles_n * p.batch),
        stages(kernel.by_BK.parts(p.k)),
        slots(loads.slots) {
    constexpr double kMaskSlots = 3;  // of a 4-byte copy that may lie outside: compare, select, shift
    const auto k_masked = stages * kernel.BK != p.k;
    const auto rows_masked = tiles_m * kernel.BM != p.m, columns_masked = tiles_n * kernel.BN != p.n;
    slots = slots + loads.copy_slots_a * where(rows_masked | k_masked, 1 + kMaskSlots, 1.0) +
            loads.copy_slots_b * where(columns_masked | k_masked, 1 + kMaskSlots, 1.0);
  }

  Split<N> unsplit() const { return {1.0, stages, tiles}; }
  Split<N> split(const N& count) const { return {count, DivisorOf<N>(count).parts(stages), tiles * count}; }
  // With as many blocks as get at least one stage each (effective_split).
  Split<N> effective_split(const N& wanted) const {
    const N of_block = DivisorOf<N>(wanted).parts(stages), count = DivisorOf<N>(of_block).parts(stages);
    return {count, of_block, tiles * count};
  }

  Formula formula;
  const KernelNumbers<N>& kernel;
  const LoadNumbers<N>& loads;
  const CostProblem& problem;
  N tiles_m, tiles_n, tiles;  // of C; of all matrices of the batch
  N stages;                   // of all k
  N slots;                    // that a stage takes
};

}  // namespace cost

// One kernel's cost of one problem, which both must outlive it. The configuration must be able to serve the problem.
class ProductCost {
 public:
  ProductCost(const KernelCost& kernel, const CostProblem& problem)
      : product_(kernel.formula, kernel.numbers, kernel.loads[loads_index(kernel.formula, problem)], problem) {}

  CostTerms terms(int split, Reduction reduction) const;

 private:
  cost::Product<double> product_;
};

// Predicted time of one execution in microseconds.
double predicted_us(const DeviceInfo& device, const Choice& choice, const Problem& problem);

// Time of copying the operands, all panels together.
double relayout_us(const DeviceInfo& device, Relayout relayout, const Problem& problem);

// A lower bound of any kernel's time: arithmetic peak, device memory, launch.
double floor_us(const DeviceInfo& device, const Problem& problem);

// Blocks of this configuration that fit one multiprocessor at a time.
int blocks_per_sm(const KernelConfig& config, const DeviceLimits& limits);

}  // namespace gemm
