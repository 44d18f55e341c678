#include "tuner/portfolio.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

constexpr double kUncovered = 2.0;  // log of the slowdown that a point without any kernel counts as (about 7 times)

// Log of the slowdown of a point with each kernel that was measured on it; the winner counts as 0, so ties do too.
std::map<std::string, double> losses_of(const PointResult& point) {
  std::map<std::string, double> losses;
  for (const PointOption& option : point.options) {
    const double slowdown = option.time_us.median / point.options.front().time_us.median;
    const double loss = &option == &point.options.front() ? 0 : std::max(1e-4, std::log(slowdown));
    const auto [place, is_new] = losses.emplace(config_id(option.choice.config), loss);
    if (!is_new) place->second = std::min(place->second, loss);
  }
  return losses;
}

}  // namespace

std::set<std::string> select_portfolio(const std::vector<PointResult>& points, size_t most) {
  std::map<std::string, std::vector<std::pair<size_t, double>>> kernels;  // id -> (point, loss)
  for (size_t i = 0; i < points.size(); ++i)
    for (const auto& [id, loss] : losses_of(points[i])) kernels[id].emplace_back(i, loss);

  std::set<std::string> portfolio;
  std::vector<double> current(points.size(), kUncovered);
  while (portfolio.size() < most) {
    const std::string* best = nullptr;
    double best_gain = 0;
    for (const auto& [id, served] : kernels) {
      double gain = 0;
      for (const auto& [point, loss] : served) gain += std::max(0.0, current[point] - loss);
      if (gain > best_gain) best_gain = gain, best = &id;  // the smaller id wins a draw, since the map is ordered
    }
    if (best == nullptr) break;
    portfolio.insert(*best);
    for (const auto& [point, loss] : kernels[*best]) current[point] = std::min(current[point], loss);
  }
  return portfolio;
}

}  // namespace gemm
