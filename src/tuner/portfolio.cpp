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
  explicit Selection(const std::vector<PointResult>& points) : points_(points.size()) {
    for (size_t i = 0; i < points.size(); ++i)
      for (const auto& [id, loss] : losses_of(points[i])) kernels_[id].push_back({i, loss});
  }

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

  const std::set<std::string>& chosen() const { return chosen_; }

 private:
  struct Served {
    size_t point;
    double loss;
  };
  struct Point {
    double loss = kUncovered, without = kUncovered;  // with the best chosen kernel, and with the next best
    std::string best;
  };

  void update() {
    std::fill(points_.begin(), points_.end(), Point{});
    for (const std::string& id : chosen_)
      for (const Served& one : kernels_.at(id)) {
        Point& point = points_[one.point];
        if (one.loss < point.loss)
          point = {one.loss, point.loss, id};
        else
          point.without = std::min(point.without, one.loss);
      }
  }

  // By the kernel that would go, what its exchange for one that serves these points takes off.
  std::map<std::string, double> exchange_gains(const std::vector<Served>& served) const {
    std::vector<double> loss_of(points_.size(), kUncovered);
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

  std::map<std::string, std::vector<Served>> kernels_;
  std::vector<Point> points_;
  std::set<std::string> chosen_;
};

}  // namespace

std::set<std::string> select_portfolio(const std::vector<PointResult>& points, size_t most) {
  Selection selection(points);
  while (selection.chosen().size() < most && selection.grow()) {
  }
  while (selection.exchange()) {
  }
  return selection.chosen();
}

}  // namespace gemm
