// GEMM_POLICY_REPRODUCIBLE: kernels whose results depend on nothing but the numbers, the sizes and whether it is a batch.
#pragma once

#include <vector>

#include "kernels/launch.h"
#include "kernels/problem.h"

namespace gemm {

// What may serve the problem, best first. All of them, on any GPU, at any address and for any layout, give the same bits:
// they add the products of k in the same order. Whoever changes this changes the results of programs that rely on it.
std::vector<Choice> reproducible_choices(const Problem& problem);

}  // namespace gemm
