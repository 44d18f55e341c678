// A quick search for the best split of k by the cost model, where a choice must be made within microseconds. split_search.h
// has the thorough one, for the tuner. Neither finds what the other does: of 63,596 pairs of a random problem and a kernel
// of the H200 table 83 % get the same split, 10 % one that is slower by the cost model (by 10 % on average), 7 % a faster
// one, since here a climb stops at the first split that is no better, and there more than six blocks for a place are not
// looked at.
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

Way best_way(const ProductCost& cost, bool may_cluster, int64_t workspace);

}  // namespace gemm
