// How eight kernels at a time serve a problem best by the cost model, and how long they take. Compiled twice: for any CPU,
// and with vectors of 8 floats for x86-64 CPUs that have them (kernel_search_wide.cpp), to the same last bit. split_search.h
// has the thorough search for one kernel, for the tuner; here a climb stops at the first split that is no better.
#pragma once

#include <array>

#include "dispatch/cost_model.h"

namespace gemm {

inline constexpr size_t kKernelsAtOnce = 8;
// Aligned as vectors are.
struct alignas(kKernelsAtOnce * sizeof(float)) LaneRow : std::array<float, kKernelsAtOnce> {};

// Up to eight kernels with the same formula, side by side.
struct KernelGroup {
  static constexpr size_t kNumbers = sizeof(cost::KernelNumbers<double>) / sizeof(double);
  static constexpr size_t kLoadNumbers = sizeof(cost::LoadNumbers<double>) / sizeof(double);

  explicit KernelGroup(Formula its_formula) : formula(its_formula) {}
  void add(const KernelCost& kernel, bool may_cluster);

  Formula formula;
  size_t count = 0;
  std::array<LaneRow, kNumbers> numbers{};
  std::array<std::array<LaneRow, kLoadNumbers>, kLoads> loads{};
  LaneRow may_cluster{};  // 1 or 0
};

// How they serve a problem. An infinite time where one cannot.
struct GroupWays {
  LaneRow fixed, compute, memory, latency, reduction;  // cost::Terms
  LaneRow us, split, how;                              // `how` is the number of a Reduction
};

// Kernels that take at least `hopeless_us` with a split that gives each multiprocessor a block, and unsplit, climb no
// further.
using KernelSearch = void (*)(const KernelGroup& group, const CostProblem& problem, double workspace, double hopeless_us,
                              GroupWays& ways);
// The fastest one that this CPU can run.
KernelSearch kernel_search();
KernelSearch narrow_kernel_search();
KernelSearch wide_kernel_search();

}  // namespace gemm
