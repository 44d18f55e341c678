// GEMM_POLICY_REPRODUCIBLE: kernels whose results depend on nothing but the numbers, the sizes and whether it is a batch.
#pragma once

#include <vector>

#include "kernels/launch.h"
#include "kernels/problem.h"

namespace gemm {

// What may serve the problem, best first. All of them, on any GPU, at any address and for any layout, give the same bits:
// they add the products of k in the same order. Whoever changes this changes the results of programs that rely on it.
std::vector<Choice> reproducible_choices(const Problem& problem);

// The configurations of all choices there are. They repeat the selector's default_configs() on purpose: those may change,
// and these may not.
std::vector<KernelConfig> reproducible_configs();

}  // namespace gemm
