// A quick search for the best split of k by the cost model, where a choice must be made within microseconds. split_search.h
// has the thorough one, for the tuner.
#pragma once

#include <cstdint>
#include <limits>

#include "dispatch/cost_model.h"

namespace gemm {

// How a kernel serves a problem.
struct Way {
  double us = std::numeric_limits<double>::infinity();  // by the cost model; infinite where none was found
  CostTerms terms;
  int split = 1;
  Reduction reduction = Reduction::ticket;
};

Way best_way(const KernelCost& kernel, const CostProblem& problem, bool may_cluster, int64_t workspace);

}  // namespace gemm
