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

// What a portfolio may be chosen from once random problems are surveyed: the kernels of select_portfolio for the points, and
// those for the problems that were surveyed, by this run or by earlier ones with other points.
std::set<std::string> portfolio_pool(const std::vector<PointResult>& points, const std::vector<PointResult>& survey,
                                     size_t most);
// Of the pool, for points and surveyed problems, which count as much as each other in all. The points' winners are seldom
// the best for what lies between them: on an H200, 64 kernels for 266 points reached 0.995 of the best on 383 other
// problems, and 64 for 1,146 surveyed problems too 0.999; on the points it was 0.995 before and after.
std::set<std::string> select_portfolio(const std::vector<PointResult>& points, const std::vector<PointResult>& survey,
                                       const std::set<std::string>& pool, size_t most);

}  // namespace gemm
