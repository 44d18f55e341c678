#include "dispatch/selector.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "dispatch/split_search.h"
#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

// Nearest points that are offered beside the best one, for when a kernel cannot be built.
constexpr size_t kNearestOffered = 4;
// A point for other storage counts as this many octaves further away per operand: its kernel fits, its speed was not tested.
constexpr double kOpPenalty = 1.0;
// Predicted kernels that are offered, for the same reason.
constexpr size_t kPredictedOffered = 4;
// A point so near, where cuBLAS was faster than every kernel, speaks for cuBLAS here too.
constexpr double kNearCublas = 0.25;
// Rejections that are told to people; more of them say nothing new.
constexpr size_t kRejectedTold = 8;

double octaves(int64_t a, int64_t b) {
  return std::log2(static_cast<double>(std::max<int64_t>(1, a))) - std::log2(static_cast<double>(std::max<int64_t>(1, b)));
}

class Chooser {
 public:
  Chooser(const Table* table, const Problem& problem, const DeviceInfo& device, int64_t workspace)
      : table_(table), problem_(problem), device_(device), workspace_(workspace) {}

  Decision choose() {
    const TablePoint* exact = table_ ? table_->find_point(problem_) : nullptr;
    const bool served = exact != nullptr && offer_point(*exact, Rule::exact, 0);
    if (table_) {
      const NearPoints nearest = near_points(exact);
      if (!served && !nearest.empty() && nearest.front().first <= kNearCublas && nearest.front().second->use_cublas)
        offer_point(*nearest.front().second, Rule::nearest, nearest.front().first);
      // A tuned problem needs no prediction, which takes up to two milliseconds for 62 kernels.
      if (!served) offer_predicted();
      offer_nearest(nearest);
    }
    offer_defaults();
    decision_.candidates.push_back({.rule = Rule::cublas, .use_cublas = true});
    return std::move(decision_);
  }

 private:
  // Adds the point's cuBLAS or kernel. A kernel that lost to cuBLAS still serves where there is no cuBLAS.
  bool offer_point(const TablePoint& point, Rule rule, double distance) {
    bool offered = point.use_cublas;
    if (point.use_cublas)
      decision_.candidates.push_back({.rule = rule, .use_cublas = true, .distance = distance, .point = &point});
    const PortfolioKernel* kernel = table_->find_kernel(point.kernel);
    if (!kernel) return offered;
    const Choice choice{kernel->config, point.split_k, point.reduction};
    const std::string why = why_illegal(choice, problem_, device_, workspace_);
    if (!why.empty()) {
      reject(to_string(choice) + " of point " + to_string(point.problem), why);
      return offered;
    }
    return offer({.rule = rule, .choice = choice, .distance = distance, .point = &point}) || offered;
  }

  // Each choice is offered once, by the first rule that names it.
  bool offer(const Candidate& candidate) {
    for (const Candidate& other : decision_.candidates)
      if (!other.use_cublas && other.choice == candidate.choice) return false;
    decision_.candidates.push_back(candidate);
    return true;
  }

  void reject(const std::string& what, const std::string& why) {
    if (decision_.rejected.size() < kRejectedTold) decision_.rejected.push_back(what + ": " + why);
  }

  using NearPoints = std::vector<std::pair<double, const TablePoint*>>;

  NearPoints near_points(const TablePoint* exact) const {
    NearPoints points;
    for (const TablePoint& point : table_->points)
      if (&point != exact) points.emplace_back(distance(problem_, point.problem), &point);
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return points;
  }

  void offer_nearest(const NearPoints& points) {
    size_t offered = 0;
    for (const auto& [distance, point] : points) {
      if (offered == kNearestOffered) return;
      offered += offer_point(*point, Rule::nearest, distance);
    }
  }

  // Each kernel of the portfolio with the split that the model likes best, by the model's time and the kernel's own factor.
  void offer_predicted() {
    std::vector<Candidate> predicted;
    for (const PortfolioKernel& kernel : table_->portfolio) {
      if (!kernel.model_factor || why_invalid(kernel.config, device_.limits) != nullptr) continue;
      if (const std::optional<PredictedChoice> best = best_split(kernel.config, problem_, device_, workspace_))
        predicted.push_back(
            {.rule = Rule::predicted, .choice = best->choice, .predicted_us = best->us * *kernel.model_factor});
    }
    std::stable_sort(predicted.begin(), predicted.end(),
                     [](const Candidate& a, const Candidate& b) { return a.predicted_us < b.predicted_us; });
    for (size_t i = 0; i < std::min(kPredictedOffered, predicted.size()); ++i) offer(predicted[i]);
  }

  // First the largest tile that still gives each SM a block, else the smallest; then the others.
  void offer_defaults() {
    std::vector<KernelConfig> configs = default_configs();
    // In floating point, because sizes of any length are asked about.
    const auto tiles = [](int64_t length, int tile) { return std::ceil(static_cast<double>(length) / tile); };
    const auto fills = [&](const KernelConfig& c) {
      return tiles(problem_.m, c.BM) * tiles(problem_.n, c.BN) * static_cast<double>(problem_.batch) >= device_.sm_count;
    };
    auto first = std::find_if(configs.begin(), configs.end(), fills);
    if (first == configs.end()) --first;
    std::rotate(configs.begin(), first, first + 1);
    for (const KernelConfig& config : configs) {
      const Choice choice{config, 1, Reduction::ticket};
      const std::string why = why_illegal(choice, problem_, device_, workspace_);
      if (why.empty())
        offer({.rule = Rule::fallback, .choice = choice});
      else
        reject(to_string(choice) + " (default)", why);
    }
  }

  const Table* table_;
  const Problem& problem_;
  const DeviceInfo& device_;
  int64_t workspace_;
  Decision decision_;
};

}  // namespace

const char* to_string(Rule rule) {
  switch (rule) {
    case Rule::exact: return "exact";
    case Rule::predicted: return "predicted";
    case Rule::nearest: return "nearest";
    case Rule::fallback: return "default";
    case Rule::cublas: return "cublas";
    case Rule::reproducible: return "reproducible";
  }
  return "unknown";
}

const std::vector<KernelConfig>& default_configs() {
  constexpr LoadPath load = LoadPath::register_staged;
  static const std::vector<KernelConfig> configs = {
      {.BM = 128, .BN = 128, .BK = 8, .WM = 64, .WN = 32, .TM = 8, .TN = 8, .stages = 2, .load = load},
      {.BM = 64, .BN = 64, .BK = 8, .WM = 32, .WN = 32, .TM = 8, .TN = 4, .stages = 2, .load = load},
      {.BM = 32,
       .BN = 32,
       .BK = 16,
       .WM = 32,
       .WN = 16,
       .WNITER = 2,
       .TM = 8,
       .TN = 1,
       .stages = 2,
       .slices = 2,
       .load = load,
       .order = FmaOrder::columns},
  };
  return configs;
}

double distance(const Problem& a, const Problem& b) {
  const double m = octaves(a.m, b.m), n = octaves(a.n, b.n), k = octaves(a.k, b.k), batch = octaves(a.batch, b.batch);
  return std::sqrt(m * m + n * n + k * k + batch * batch) + kOpPenalty * ((a.op_a != b.op_a) + (a.op_b != b.op_b));
}

Decision choose(const Table* table, const Problem& problem, const DeviceInfo& device, int64_t workspace_available) {
  return Chooser(table, problem, device, workspace_available).choose();
}

std::string to_string(const Candidate& candidate) {
  std::string text = to_string(candidate.rule);
  char number[48] = "";
  if (candidate.rule == Rule::nearest) std::snprintf(number, sizeof number, " (distance %.2f)", candidate.distance);
  if (candidate.rule == Rule::predicted) std::snprintf(number, sizeof number, " (%.4g us)", candidate.predicted_us);
  text += number;
  return text + ": " + (candidate.use_cublas ? "cuBLAS" : to_string(candidate.choice));
}

}  // namespace gemm
