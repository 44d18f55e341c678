#include "tuner/candidates.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <tuple>

#include "dispatch/cost_model.h"
#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

constexpr double kReuseBonus = 0.93;   // of the predicted time, for a kernel that is compiled anyway (most of a tuning run)
constexpr double kHopeless = 4.0;      // times the best prediction: not worth compiling
constexpr size_t kPerTile = 4;         // candidates of the first pass with the same BM x BN
constexpr size_t kPerTileAndKind = 2;  // and those of them that are the same kind of kernel
constexpr double kProvenWithin = 1.5;  // of the best prediction: proven configurations up to here are tried
constexpr double kKindWithin = 1.5;    // and kinds of kernels: the model compares them less well than tiles of one kind
constexpr size_t kPerKind = 8;         // candidates that such a kind gets, out of 64
constexpr double kProvenPass = 0.35;   // share of the candidates that proven configurations may take
constexpr double kFirstPass = 0.7;     // and the share that is filled once the spread passes have picked
constexpr double kSiblingPass = 0.85;  // and the share that is filled once the siblings of the best are in
constexpr size_t kSiblingsOf = 5;      // how many of the best get their siblings tried
constexpr size_t kMostRanked = 1000;   // bases that are looked at more closely
constexpr size_t kLeastRanked = 50;    // of each kind

// The order of the stream family says which operand is long, which the model does see.
KernelConfig base_of(KernelConfig config) {
  if (config.family != Family::stream) config.order = FmaOrder::rows;
  config.acc_init = AccInit::plain;
  return config;
}

KernelConfig with_load(KernelConfig config, LoadPath load) {
  config.load = load;
  return config;
}

// Kernels that the model predicts by different formulas, so that its errors differ.
enum class Kind { copies, tensor_copies, copy_warpgroup, copy_warpgroup_k, stream, batch, relaid };

Kind kind_of(const Choice& choice) {
  const KernelConfig& config = choice.config;
  if (choice.relayout != Relayout::none) return Kind::relaid;
  if (config.family == Family::stream) return Kind::stream;
  if (config.family == Family::batch) return Kind::batch;
  if (config.load == LoadPath::tma) return Kind::tensor_copies;
  if (config.load == LoadPath::warp_specialized_k) return Kind::copy_warpgroup_k;
  return config.load == LoadPath::warp_specialized ? Kind::copy_warpgroup : Kind::copies;
}

// The load path of a configuration's twin, which may do the same on some problems.
LoadPath twin_of(LoadPath load) {
  return load == LoadPath::warp_specialized_k ? LoadPath::warp_specialized : LoadPath::async;
}

// Whether this configuration does on this problem what it would do with its twin's load path: where no operand is contiguous
// along k there is nothing to transpose, or to leave so, and operands that the tensor copy engine cannot copy go the twin's
// way.
bool runs_as_twin(const KernelConfig& config, const Problem& problem) {
  if (config.family != Family::tile) return false;
  if (config.load == LoadPath::async_transpose) return problem.op_a == Op::N && problem.op_b == Op::T;
  const KernelVariant v = variant_for(config, problem, {});
  if (config.load == LoadPath::warp_specialized_k) return !layout_a(v).k_fast && !layout_b(v).k_fast;
  return config.load == LoadPath::tma && v.config.load == LoadPath::async;
}

// Only clusters have a kernel of their own.
bool runs_same_kernel(Reduction a, Reduction b) { return (a == Reduction::cluster) == (b == Reduction::cluster); }

// Slow problems need fewer candidates: the model knows large ones better, and each trial costs more.
size_t candidate_count(int most, double best_us) {
  const double share = best_us < 1000 ? 1.0 : best_us < 8000 ? 0.7 : 0.5;
  return static_cast<size_t>(std::max(1.0, most * share));
}

}  // namespace

// The choices to try, in order and without repeats.
class CandidateRanker::Selection {
 public:
  explicit Selection(size_t limit) : limit_(limit) {}
  bool full(double share = 1.0) const { return static_cast<double>(choices_.size()) >= share * static_cast<double>(limit_); }
  bool add(const Choice& choice) {
    if (full() || std::find(choices_.begin(), choices_.end(), choice) != choices_.end()) return false;
    choices_.push_back(choice);
    return true;
  }
  size_t count(Kind kind) const {
    return static_cast<size_t>(
        std::count_if(choices_.begin(), choices_.end(), [&](const Choice& choice) { return kind_of(choice) == kind; }));
  }
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  size_t limit_;
  std::vector<Choice> choices_;
};

CandidateRanker::CandidateRanker(DeviceInfo device, const std::vector<KernelConfig>& configs,
                                 const std::vector<KernelConfig>& proven, int most)
    : device_(std::move(device)), most_(most) {
  for (const KernelConfig& config : proven)
    if (std::find(configs.begin(), configs.end(), config) != configs.end()) proven_.push_back(config);
  std::map<std::string, size_t> index;
  for (const KernelConfig& config : configs) {
    const KernelConfig base = base_of(config);
    const auto [place, is_new] = index.emplace(config_id(base), bases_.size());
    if (is_new) bases_.push_back({base, {}});
    bases_[place->second].siblings.push_back(config);
  }
  for (Base& base : bases_)
    base.has_twin = base.config.load != twin_of(base.config.load) &&
                    index.count(config_id(with_load(base.config, twin_of(base.config.load)))) != 0;
}

std::optional<PredictedChoice> CandidateRanker::best_split(const KernelConfig& config, const Problem& problem) const {
  return gemm::best_split(config, problem, device_, kWorkspaceBytes);
}

std::vector<CandidateRanker::Ranked> CandidateRanker::ranked(const Problem& problem) const {
  std::vector<Ranked> all;
  const auto add = [&](const Base& base, const std::optional<PredictedChoice>& best) {
    if (best) all.push_back({&base, best->choice, best->us});
  };
  for (const Base& base : bases_)
    if (!base.has_twin || !runs_as_twin(base.config, problem)) add(base, best_split(base.siblings.front(), problem));
  for (const Relayout relayout : relayouts_of(problem, device_)) {
    const Problem relaid = relaid_problem(relayout, problem);
    for (const Base& base : bases_)
      if (gains_by_relayout(base.config) && !(base.has_twin && runs_as_twin(base.config, relaid)))
        add(base, best_on_copies(base.siblings.front(), relayout, problem, device_, kWorkspaceBytes));
  }
  const auto faster = [](const Ranked& a, const Ranked& b) { return a.predicted_us < b.predicted_us; };
  std::stable_sort(all.begin(), all.end(), faster);
  std::vector<Ranked> list;
  std::map<Kind, size_t> per_kind;
  for (const Ranked& r : all)
    if (list.size() < kMostRanked || per_kind[kind_of(r.choice)] < kLeastRanked) {
      ++per_kind[kind_of(r.choice)];
      list.push_back(r);
    }
  for (Ranked& r : list)
    if (chosen_.count(variant_spec(variant_of(r.choice, problem, {})).name) != 0) r.predicted_us *= kReuseBonus;
  std::stable_sort(list.begin(), list.end(), faster);
  return list;
}

std::vector<Choice> CandidateRanker::proven_choices(const Problem& problem, double best_us) const {
  std::vector<PredictedChoice> found;
  const auto add = [&](const std::optional<PredictedChoice>& best) {
    if (best && best->us < kProvenWithin * best_us) found.push_back(*best);
  };
  const std::vector<Relayout> relayouts = relayouts_of(problem, device_);
  for (const KernelConfig& config : proven_) {
    add(best_split(config, problem));
    if (!gains_by_relayout(config)) continue;
    for (const Relayout relayout : relayouts) add(best_on_copies(config, relayout, problem, device_, kWorkspaceBytes));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.us < b.us; });
  std::vector<Choice> choices;
  choices.reserve(found.size());
  for (const PredictedChoice& one : found) choices.push_back(one.choice);
  return choices;
}

// A few of each kind of kernel, with different tiles.
void CandidateRanker::add_kinds(const std::vector<Ranked>& list, Selection& selection) const {
  const size_t per_kind = std::max<size_t>(1, kPerKind * static_cast<size_t>(most_) / 64);
  std::set<std::tuple<Kind, int, int>> tiles;
  for (const Ranked& r : list) {
    const Kind kind = kind_of(r.choice);
    if (r.predicted_us > kKindWithin * list.front().predicted_us || selection.full(kFirstPass)) break;
    if (selection.count(kind) < per_kind && tiles.insert({kind, r.choice.config.BM, r.choice.config.BN}).second)
      selection.add(r.choice);
  }
}

// The best, with a limit for those that have the same tile.
void CandidateRanker::add_tiles(const std::vector<Ranked>& list, Selection& selection) const {
  std::map<std::pair<int, int>, size_t> per_tile;
  std::map<std::tuple<int, int, Kind>, size_t> per_kind;
  std::set<std::tuple<int, int, int, int, LoadPath, Relayout>> shapes;
  for (const Ranked& r : list) {
    const KernelConfig& c = r.choice.config;
    if (selection.full(kFirstPass)) break;
    size_t& same_tile = per_tile[{c.BM, c.BN}];
    size_t& same_kind = per_kind[{c.BM, c.BN, kind_of(r.choice)}];
    const std::tuple shape{c.BM, c.BN, c.BK, c.slices, c.load, r.choice.relayout};
    if (same_tile >= kPerTile || same_kind >= kPerTileAndKind || shapes.count(shape) != 0) continue;
    if (selection.add(r.choice)) ++same_tile, ++same_kind, shapes.insert(shape);
  }
}

void CandidateRanker::add_siblings(const std::vector<Ranked>& list, Selection& selection) const {
  const size_t count = std::min(kSiblingsOf, selection.choices().size());
  const std::vector<Choice> leaders(selection.choices().begin(),
                                    selection.choices().begin() + static_cast<std::ptrdiff_t>(count));
  for (const Choice& leader : leaders)
    for (const Ranked& r : list)
      if (r.base->config == base_of(leader.config))
        for (const KernelConfig& sibling : r.base->siblings)
          if (!selection.full(kSiblingPass)) selection.add({sibling, leader.split_k, leader.reduction, leader.relayout});
}

std::vector<Choice> CandidateRanker::candidates(const Problem& problem) {
  std::vector<Ranked> list = ranked(problem);
  if (list.empty()) return {};
  const double best = list.front().predicted_us;
  std::erase_if(list, [&](const Ranked& r) { return r.predicted_us > kHopeless * best; });
  Selection selection(candidate_count(most_, best));
  for (const Choice& choice : proven_choices(problem, best))
    if (!selection.full(kProvenPass)) selection.add(choice);
  add_kinds(list, selection);
  add_tiles(list, selection);
  add_siblings(list, selection);
  for (const Ranked& r : list) selection.add(r.choice);

  for (const Choice& choice : selection.choices()) chosen_.insert(variant_spec(variant_of(choice, problem, {})).name);
  return selection.choices();
}

std::vector<Choice> split_neighbours(const Choice& choice, const Problem& problem, const DeviceInfo& device) {
  std::vector<Choice> neighbours;
  const auto add = [&](int split, Reduction reduction) {
    const Choice neighbour{choice.config, split, reduction, choice.relayout};
    if (neighbour == choice || !may_run(neighbour, problem, device, kWorkspaceBytes)) return;
    if (std::find(neighbours.begin(), neighbours.end(), neighbour) == neighbours.end()) neighbours.push_back(neighbour);
  };
  if (is_specialized(choice.config.load)) add(1, Reduction::stream_k);
  const int s = choice.split_k;
  for (int split : {s, s / 2, s - 1, s + 1, s * 3 / 2, s * 2})
    if (split >= 1)
      for (const Reduction reduction : reductions_of(choice.config, split))
        if (split == s || runs_same_kernel(reduction, choice.reduction)) add(split, reduction);
  return neighbours;
}

std::vector<Choice> relayout_neighbours(const Choice& choice, const Problem& problem, const DeviceInfo& device) {
  std::vector<Choice> neighbours;
  if (!gains_by_relayout(choice.config)) return neighbours;
  std::vector<Relayout> relayouts = relayouts_of(problem, device);
  relayouts.push_back(Relayout::none);
  for (const Relayout relayout : relayouts) {
    const Choice neighbour{choice.config, choice.split_k, choice.reduction, relayout};
    if (relayout != choice.relayout && may_run(neighbour, problem, device, kWorkspaceBytes)) neighbours.push_back(neighbour);
  }
  return neighbours;
}

}  // namespace gemm
