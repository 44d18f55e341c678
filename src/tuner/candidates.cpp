#include "tuner/candidates.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "kernels/kernel_spec.h"
#include "tuner/cost_model.h"

namespace gemm {
namespace {

constexpr std::array<int, 22> kSplits = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64, 80, 96, 128};
constexpr double kReuseBonus = 0.97;   // of the predicted time, for a kernel that is compiled anyway
constexpr double kHopeless = 4.0;      // times the best prediction: not worth compiling
constexpr size_t kPerTile = 2;         // candidates of the first pass with the same BM x BN
constexpr double kProvenWithin = 1.5;  // of the best prediction: proven configurations up to here are tried
constexpr double kProvenPass = 0.35;   // share of the candidates that proven configurations may take
constexpr double kFirstPass = 0.7;     // and the share that is filled once the spread pass has picked
constexpr double kSiblingPass = 0.85;  // and the share that is filled once the siblings of the best are in
constexpr size_t kSiblingsOf = 5;      // how many of the best get their siblings tried
constexpr size_t kMostRanked = 1000;   // bases that are looked at more closely
constexpr int kWorseSplits = 12;       // predictions in a row without a better one: more splits will not help
constexpr int kMostBlocksPerSlot = 6;  // splitting further only adds reduction work

KernelConfig base_of(KernelConfig config) {
  config.order = FmaOrder::rows;
  config.acc_init = AccInit::plain;
  return config;
}

// For a configuration that is valid: whether this split can run, and is not the same as a smaller one.
bool may_run(const Choice& choice, const Problem& problem, const DeviceLimits& limits) {
  return effective_split(choice.config, problem, choice.split_k) == choice.split_k &&
         workspace_bytes(choice, problem) <= kWorkspaceBytes &&
         why_illegal(choice, problem, limits, kWorkspaceBytes).empty();
}

// Slow problems need fewer candidates: the model knows large ones better, and each trial costs more.
size_t candidate_count(int most, double best_us) {
  const double share = best_us < 1000 ? 1.0 : best_us < 8000 ? 0.7 : 0.5;
  return static_cast<size_t>(std::max(1.0, most * share));
}

// The choices to try, in order and without repeats.
class Selection {
 public:
  explicit Selection(size_t limit) : limit_(limit) {}
  bool full(double share = 1.0) const { return static_cast<double>(choices_.size()) >= share * static_cast<double>(limit_); }
  bool add(const Choice& choice) {
    if (full() || std::find(choices_.begin(), choices_.end(), choice) != choices_.end()) return false;
    choices_.push_back(choice);
    return true;
  }
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  size_t limit_;
  std::vector<Choice> choices_;
};

}  // namespace

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
    if (base.load == LoadPath::async) async_ids_.insert(config_id(base));
  }
}

// Where no operand is contiguous along k, async and async_transpose are the same kernel.
bool CandidateRanker::same_as_async(const Base& base, const Problem& problem) const {
  if (base.config.load != LoadPath::async_transpose || problem.op_a == Op::T || problem.op_b == Op::N) return false;
  KernelConfig twin = base.config;
  twin.load = LoadPath::async;
  return async_ids_.count(config_id(twin)) != 0;
}

std::optional<CandidateRanker::PredictedChoice> CandidateRanker::best_split(const KernelConfig& config,
                                                                            const Problem& problem) const {
  std::optional<PredictedChoice> best;
  const int64_t tiles_m = (problem.m + config.BM - 1) / config.BM, tiles_n = (problem.n + config.BN - 1) / config.BN;
  const double tiles = static_cast<double>(tiles_m) * static_cast<double>(tiles_n) * static_cast<double>(problem.batch);
  const double most_blocks =
      static_cast<double>(kMostBlocksPerSlot) * blocks_per_sm(config, device_.limits) * device_.sm_count;
  int worse = 0;
  for (int split : kSplits) {
    if (split > 1 && (tiles * split > most_blocks || worse >= kWorseSplits)) break;
    for (Reduction reduction : {Reduction::ticket, Reduction::kernel}) {
      if (split == 1 && reduction == Reduction::kernel) continue;
      const Choice choice{config, split, reduction};
      if (!may_run(choice, problem, device_.limits)) continue;
      const double us = predicted_us(device_, choice, problem);
      ++worse;
      if (!best || us < best->us) best = {us, choice}, worse = 0;
    }
  }
  return best;
}

std::vector<CandidateRanker::Ranked> CandidateRanker::ranked(const Problem& problem) const {
  std::vector<Ranked> list;
  for (const Base& base : bases_)
    if (!same_as_async(base, problem))
      if (const std::optional<PredictedChoice> best = best_split(base.siblings.front(), problem))
        list.push_back({&base, best->choice, best->us});
  const auto faster = [](const Ranked& a, const Ranked& b) { return a.predicted_us < b.predicted_us; };
  std::stable_sort(list.begin(), list.end(), faster);
  if (list.size() > kMostRanked) list.resize(kMostRanked);
  for (Ranked& r : list)
    if (chosen_.count(tile_spec(variant_for(r.choice.config, problem, {})).name) != 0) r.predicted_us *= kReuseBonus;
  std::stable_sort(list.begin(), list.end(), faster);
  return list;
}

std::vector<Choice> CandidateRanker::proven_choices(const Problem& problem, double best_us) const {
  std::vector<PredictedChoice> found;
  for (const KernelConfig& config : proven_)
    if (const std::optional<PredictedChoice> best = best_split(config, problem))
      if (best->us < kProvenWithin * best_us) found.push_back(*best);
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.us < b.us; });
  std::vector<Choice> choices;
  choices.reserve(found.size());
  for (const PredictedChoice& one : found) choices.push_back(one.choice);
  return choices;
}

std::vector<Choice> CandidateRanker::candidates(const Problem& problem) {
  std::vector<Ranked> list = ranked(problem);
  if (list.empty()) return {};
  const double best = list.front().predicted_us;
  std::erase_if(list, [&](const Ranked& r) { return r.predicted_us > kHopeless * best; });
  Selection selection(candidate_count(most_, best));
  for (const Choice& choice : proven_choices(problem, best))
    if (!selection.full(kProvenPass)) selection.add(choice);

  std::map<std::pair<int, int>, size_t> per_tile;
  std::map<std::tuple<int, int, int, int, LoadPath>, size_t> per_shape;
  for (const Ranked& r : list) {
    const KernelConfig& c = r.choice.config;
    if (selection.full(kFirstPass)) break;
    size_t& same_tile = per_tile[{c.BM, c.BN}];
    size_t& same_shape = per_shape[{c.BM, c.BN, c.BK, c.slices, c.load}];
    if (same_tile >= kPerTile || same_shape >= 1) continue;
    if (selection.add(r.choice)) ++same_tile, ++same_shape;
  }
  const std::vector<Choice> leaders(selection.choices().begin(),
                                    selection.choices().begin() + std::min(kSiblingsOf, selection.choices().size()));
  for (const Choice& leader : leaders)
    for (const Ranked& r : list)
      if (r.base->config == base_of(leader.config))
        for (const KernelConfig& sibling : r.base->siblings)
          if (!selection.full(kSiblingPass)) selection.add({sibling, leader.split_k, leader.reduction});
  for (const Ranked& r : list) selection.add(r.choice);

  for (const Choice& choice : selection.choices()) chosen_.insert(tile_spec(variant_for(choice.config, problem, {})).name);
  return selection.choices();
}

std::vector<Choice> split_neighbours(const Choice& choice, const Problem& problem, const DeviceLimits& limits) {
  std::vector<Choice> neighbours;
  const int s = choice.split_k;
  for (int split : {s, s / 2, s - 1, s + 1, s * 3 / 2, s * 2})
    for (Reduction reduction : {Reduction::ticket, Reduction::kernel}) {
      const Choice neighbour{choice.config, split, reduction};
      if (split < 1 || neighbour == choice || (split == 1 && reduction == Reduction::kernel)) continue;
      if (!may_run(neighbour, problem, limits)) continue;
      if (std::find(neighbours.begin(), neighbours.end(), neighbour) == neighbours.end()) neighbours.push_back(neighbour);
    }
  return neighbours;
}

}  // namespace gemm
