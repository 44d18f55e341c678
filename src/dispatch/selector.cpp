#include "dispatch/selector.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>

#include "dispatch/split_search.h"
#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

// Nearest points that are offered beside the best one, for when a kernel cannot be built.
constexpr size_t kNearestOffered = 4;
// A point for other storage counts as this many octaves further away per operand: its kernel fits, its speed was not tested.
constexpr double kOpPenalty = 1.0;
// Share of the best kernel's predicted time below which cuBLAS is chosen: cuBLAS is predicted less well. Replayed on the
// log of an H200 (docs/performance.md, "Calibration with favourites"), choices were 0.2 % faster with 0.93 than with 0.97,
// and no faster with 0.91 or 0.87.
constexpr double kClearlyFaster = 0.93;
// Nor is it chosen by prediction for larger batches, of which no calibration had any (tuner/calibration_problems.cpp): what
// is said of it knows nothing of the time that each matrix takes.
constexpr int64_t kMostBatch = 4096;
constexpr size_t kMostCandidates = 16;  // more are seldom offered
// Rejections that are told to people; more of them say nothing new.
constexpr size_t kRejectedTold = 8;

double octaves(int64_t a, int64_t b) {
  return std::log2(static_cast<double>(std::max<int64_t>(1, a))) - std::log2(static_cast<double>(std::max<int64_t>(1, b)));
}

uint64_t hash_of(const Problem& p) {
  uint64_t hash = 0;
  for (const int64_t part : {p.m, p.n, p.k, p.batch, int64_t{p.op_a == Op::T}, int64_t{p.op_b == Op::T}}) {
    hash = (hash ^ static_cast<uint64_t>(part)) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
  }
  return hash;
}

// Sizes, ops and batch; leading dimensions may differ.
bool is_same(const Problem& a, const Problem& b) {
  return a.m == b.m && a.n == b.n && a.k == b.k && a.op_a == b.op_a && a.op_b == b.op_b && a.batch == b.batch;
}

// Whether loads of A and B can be as wide; pointers are taken as aligned.
bool is_aligned_alike(const Problem& a, const Problem& b) {
  const auto widths = [](const Problem& p) {
    return std::pair{widest_vector(nullptr, p.lda, p.columns_a(), p.stride_a, p.batch),
                     widest_vector(nullptr, p.ldb, p.columns_b(), p.stride_b, p.batch)};
  };
  return widths(a) == widths(b);
}

class Chooser {
 public:
  Chooser(const Table* table, const Predictor* predictor, std::span<const char* const> why_defaults_invalid,
          const TablePoint* exact, const Problem& problem, const DeviceInfo& device, int64_t workspace)
      : table_(table),
        why_defaults_invalid_(why_defaults_invalid),
        problem_(problem),
        device_(device),
        workspace_(workspace) {
    decision_.candidates.reserve(kMostCandidates);
    // A tuned problem needs no prediction, a predicted one no neighbour. Points are packed: where operands are aligned in
    // another way, the kernel of one may be slow.
    const bool is_tuned = exact != nullptr && (predictor == nullptr || is_aligned_alike(problem, exact->problem));
    if (is_tuned && offer_point(*exact, Rule::exact, 0)) predictor = nullptr;
    const bool predicted = predictor != nullptr && offer_predicted(*predictor);
    if (exact != nullptr && !is_tuned) offer_point(*exact, Rule::exact, 0);
    if (table_ != nullptr && !predicted) offer_nearest(exact);
    offer_defaults();
    decision_.candidates.push_back({.rule = Rule::cublas, .use_cublas = true});
  }

  Decision decision() { return std::move(decision_); }

 private:
  // Adds the point's cuBLAS or kernel. A kernel that lost to cuBLAS still serves where there is no cuBLAS.
  bool offer_point(const TablePoint& point, Rule rule, double distance) {
    bool offered = point.use_cublas;
    if (point.use_cublas)
      decision_.candidates.push_back({.rule = rule, .use_cublas = true, .distance = distance, .point = &point});
    const PortfolioKernel* kernel = table_->find_kernel(point.kernel);
    if (!kernel) return offered;
    const Choice choice = choice_of(point, kernel->config);
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

  void offer_nearest(const TablePoint* exact) {
    std::vector<std::pair<double, const TablePoint*>> points;
    for (const TablePoint& point : table_->points)
      if (&point != exact) points.emplace_back(distance(problem_, point.problem), &point);
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    size_t offered = 0;
    for (const auto& [distance, point] : points) {
      if (offered == kNearestOffered) return;
      offered += offer_point(*point, Rule::nearest, distance);
    }
  }

  // cuBLAS where it is predicted to be clearly faster, and the kernels, fastest first. False where there is none.
  bool offer_predicted(const Predictor& predictor) {
    const Predictor::Predictions predictions = predictor.predict(problem_, workspace_);
    if (predictions.count == 0) return false;
    if (predictions.cublas_us > 0 && problem_.batch <= kMostBatch &&
        predictions.cublas_us < kClearlyFaster * predictions.best[0].us)
      decision_.candidates.push_back({.rule = Rule::predicted, .use_cublas = true, .predicted_us = predictions.cublas_us});
    for (size_t i = 0; i < predictions.count; ++i)
      offer({.rule = Rule::predicted, .choice = predictions.best[i].choice, .predicted_us = predictions.best[i].us});
    return true;
  }

  // First the largest tile that still gives each SM a block, else the smallest; then the others.
  void offer_defaults() {
    const std::vector<KernelConfig>& configs = default_configs();
    // In floating point, because sizes of any length are asked about.
    const auto tiles = [](int64_t length, int tile) { return Divisor(tile).parts(static_cast<double>(length)); };
    const auto fills = [&](const KernelConfig& c) {
      return tiles(problem_.m, c.BM) * tiles(problem_.n, c.BN) * static_cast<double>(problem_.batch) >= device_.sm_count;
    };
    size_t first = 0;
    while (first + 1 < configs.size() && !fills(configs[first])) ++first;
    offer_default(first);
    for (size_t other = 0; other < configs.size(); ++other)
      if (other != first) offer_default(other);
  }

  void offer_default(size_t number) {
    const Choice choice{default_configs()[number], 1, Reduction::ticket};
    const char* invalid = why_defaults_invalid_[number];
    const std::string why = invalid ? invalid : why_unfit(choice, problem_, device_, workspace_);
    if (why.empty())
      offer({.rule = Rule::fallback, .choice = choice});
    else
      reject(to_string(choice) + " (default)", why);
  }

  const Table* table_;
  std::span<const char* const> why_defaults_invalid_;
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

Selector::Selector(const Table* table, const DeviceInfo& device) : table_(table), device_(device) {
  for (const KernelConfig& config : default_configs()) why_defaults_invalid_.push_back(why_invalid(config, device_.limits));
  if (table_ == nullptr) return;
  predictor_.emplace(*table_, device_);
  if (predictor_->kernels() == 0) predictor_.reset();
  for (const TablePoint& point : table_->points) points_.emplace_back(hash_of(point.problem), &point);
  std::stable_sort(points_.begin(), points_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
}

const TablePoint* Selector::find_point(const Problem& problem) const {
  const uint64_t hash = hash_of(problem);
  auto place = std::lower_bound(points_.begin(), points_.end(), hash, [](const auto& a, uint64_t b) { return a.first < b; });
  for (; place != points_.end() && place->first == hash; ++place)
    if (is_same(place->second->problem, problem)) return place->second;
  return nullptr;
}

Decision Selector::choose(const Problem& problem, int64_t workspace_available) const {
  return Chooser(table_, predictor_ ? &*predictor_ : nullptr, why_defaults_invalid_, find_point(problem), problem, device_,
                 workspace_available)
      .decision();
}

Decision choose(const Table* table, const Problem& problem, const DeviceInfo& device, int64_t workspace_available) {
  return Selector(table, device).choose(problem, workspace_available);
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
