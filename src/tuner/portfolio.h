// The portfolio: the few kernels that serve all points nearly as well as each point's own winner.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tuner/points.h"

namespace gemm {

inline constexpr size_t kMostPortfolioKernels = 64;

// Ids of at most `most` kernels. Each step adds the kernel that takes most time off, as the sum over points of log(time /
// best time); then kernels are exchanged as long as that takes time off. Winners within the limit all stay.
std::set<std::string> select_portfolio(const std::vector<PointResult>& points, size_t most);

}  // namespace gemm
