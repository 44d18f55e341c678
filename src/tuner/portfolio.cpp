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

// The kernels that may be chosen, and how far each point is from its best time with those that are.
class Selection {
 public:
  // Of all kernels that were measured, or of those in `pool`.
  explicit Selection(const std::set<std::string>* pool = nullptr) : pool_(pool) {}

  void add(const std::vector<PointResult>& points, double weight = 1) {
    for (const PointResult& point : points) {
      for (const auto& [id, loss] : losses_of(point))
        if (pool_ == nullptr || pool_->count(id) != 0) kernels_[id].push_back({points_.size(), weight * loss});
      points_.push_back({weight * kUncovered, weight * kUncovered, weight * kUncovered, {}});
    }
  }

  std::set<std::string> choose(size_t most) {
    while (chosen_.size() < most && grow()) {
    }
    while (exchange()) {
    }
    return chosen_;
  }

 private:
  // Adds the kernel that takes most time off; false where none takes any. The smaller id wins a draw, since the map is
  // ordered.
  bool grow() {
    const std::string* best = nullptr;
    double best_gain = 0;
    for (const auto& [id, served] : kernels_) {
      double gain = 0;
      for (const Served& one : served) gain += std::max(0.0, points_[one.point].loss - one.loss);
      if (gain > best_gain) best_gain = gain, best = &id;
    }
    if (best == nullptr) return false;
    chosen_.insert(*best);
    update();
    return true;
  }

  // Replaces a chosen kernel by another one where that takes most time off; false where no exchange does.
  bool exchange() {
    const std::string *out = nullptr, *in = nullptr;
    double best_gain = kLeastGain;
    for (const auto& [id, served] : kernels_) {
      if (chosen_.count(id) != 0) continue;
      for (const auto& [other, gain] : exchange_gains(served))
        if (gain > best_gain) best_gain = gain, out = &*chosen_.find(other), in = &id;
    }
    if (in == nullptr) return false;
    chosen_.erase(*out);
    chosen_.insert(*in);
    update();
    return true;
  }

  struct Served {
    size_t point;
    double loss;
  };
  struct Point {
    double uncovered;      // without any kernel
    double loss, without;  // with the best chosen kernel, and with the next best
    std::string best;
  };

  void update() {
    for (Point& point : points_) point = {point.uncovered, point.uncovered, point.uncovered, {}};
    for (const std::string& id : chosen_)
      for (const Served& one : kernels_.at(id)) {
        Point& point = points_[one.point];
        if (one.loss < point.loss)
          point = {point.uncovered, one.loss, point.loss, id};
        else
          point.without = std::min(point.without, one.loss);
      }
  }

  // By the kernel that would go, what its exchange for one that serves these points takes off.
  std::map<std::string, double> exchange_gains(const std::vector<Served>& served) const {
    std::vector<double> loss_of;
    for (const Point& point : points_) loss_of.push_back(point.uncovered);
    for (const Served& one : served) loss_of[one.point] = one.loss;
    std::map<std::string, double> gains;
    double gain_of_all = 0;
    for (const std::string& id : chosen_) gains[id] = 0;
    for (size_t i = 0; i < points_.size(); ++i) {
      const Point& point = points_[i];
      const double gain = std::max(0.0, point.loss - loss_of[i]);
      gain_of_all += gain;
      if (!point.best.empty()) gains[point.best] += point.loss - std::min(point.without, loss_of[i]) - gain;
    }
    for (auto& [id, gain] : gains) gain += gain_of_all;
    return gains;
  }

  static constexpr double kLeastGain = 1e-9;  // what rounding cannot make up, so that exchanges end

  const std::set<std::string>* pool_;
  std::map<std::string, std::vector<Served>> kernels_;
  std::vector<Point> points_;
  std::set<std::string> chosen_;
};

}  // namespace

std::set<std::string> select_portfolio(const std::vector<PointResult>& points, size_t most) {
  Selection selection;
  selection.add(points);
  return selection.choose(most);
}

std::set<std::string> portfolio_pool(const std::vector<PointResult>& points, const std::vector<PointResult>& survey,
                                     size_t most) {
  std::set<std::string> pool = select_portfolio(points, most);
  pool.merge(select_portfolio(survey, most));
  return pool;
}

std::set<std::string> select_portfolio(const std::vector<PointResult>& points, const std::vector<PointResult>& survey,
                                       const std::set<std::string>& pool, size_t most) {
  Selection selection(&pool);
  const double share = static_cast<double>(survey.size()) / static_cast<double>(std::max<size_t>(1, points.size()));
  selection.add(points, survey.empty() ? 1 : share);
  selection.add(survey);
  return selection.choose(most);
}

}  // namespace gemm
