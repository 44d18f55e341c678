#include "dispatch/split_search.h"

#include <algorithm>
#include <array>

#include "dispatch/cost_model.h"

namespace gemm {
namespace {

constexpr int kWorseSplits = 6;            // in a row without a better prediction: more splits will not help
constexpr double kIdleShare = 0.25;        // of the multiprocessors: with fewer blocks than that and
constexpr double kDeepStages = 16;         // more stages than that for each of them, more splits are faster
constexpr int64_t kLongestShortSide = 16;  // of a product that the stream family is tried on: beyond it never won on an H200
constexpr int kMostBlocksPerSlot = 6;      // splitting further only adds reduction work
constexpr double kLeastRelaidUs = 3;       // products that could be faster than that are too short for a launch more

}  // namespace

std::span<const Reduction> reductions_of(const KernelConfig& config, int split) {
  static constexpr std::array kSplit = {Reduction::ticket, Reduction::kernel, Reduction::cluster};
  static constexpr std::array kPersistent = {Reduction::ticket, Reduction::stream_k};
  if (split > 1) return std::span(kSplit).first(can_cluster(config) && split <= kMostPerCluster ? 3 : 2);
  return std::span(kPersistent).first(is_specialized(config.load) ? 2 : 1);
}

bool is_skinny(const Problem& problem) { return std::min(problem.m, problem.n) <= kLongestShortSide; }

bool may_serve(const KernelConfig& config, const Problem& problem) {
  switch (config.family) {
    case Family::stream: return is_skinny(problem);
    case Family::batch: return problem.m <= config.BM && problem.n <= config.BN;
    default: return true;
  }
}

bool may_run(const Choice& choice, const Problem& problem, const DeviceInfo& device, int64_t workspace) {
  if (!may_serve(choice.config, problem)) return false;
  if (effective_split(choice.config, problem, choice.split_k) != choice.split_k) return false;
  // Whole waves of tiles leave stream-k nothing to share.
  if (choice.reduction == Reduction::stream_k &&
      workspace_bytes(without_relayout(choice), relaid_problem(choice.relayout, problem), device.sm_count) == 0)
    return false;
  return why_unfit(choice, problem, device, workspace).empty();
}

std::vector<Relayout> relayouts_of(const Problem& problem, const DeviceInfo& device) {
  if (floor_us(device, problem) < kLeastRelaidUs) return {};
  const bool a = gains_by_copy_a(problem), b = gains_by_copy_b(problem);
  std::vector<Relayout> relayouts;
  if (a) relayouts.push_back(Relayout::a);
  if (b) relayouts.push_back(Relayout::b);
  if (a && b) relayouts.push_back(Relayout::ab);
  std::erase_if(relayouts, [&](Relayout relayout) { return why_not_relaid(relayout, problem) != nullptr; });
  return relayouts;
}

bool gains_by_relayout(const KernelConfig& config) {
  return config.family == Family::tile && (config.load == LoadPath::tma || config.load == LoadPath::warp_specialized);
}

std::optional<PredictedChoice> best_on_copies(const KernelConfig& config, Relayout relayout, const Problem& problem,
                                              const DeviceInfo& device, int64_t workspace) {
  const Problem relaid = relaid_problem(relayout, problem);
  const int64_t copies = relaid_product(relayout, problem).copy_bytes();
  std::optional<PredictedChoice> best = best_split(config, relaid, device, workspace - copies);
  if (!best) return best;
  best->us += relayout_us(device, relayout, problem);
  best->choice.relayout = relayout;
  if (!may_run(best->choice, problem, device, workspace)) return std::nullopt;
  return best;
}

std::optional<PredictedChoice> best_split(const KernelConfig& config, const Problem& problem, const DeviceInfo& device,
                                          int64_t workspace) {
  std::optional<PredictedChoice> best;
  if (why_invalid(config, device.limits) != nullptr) return best;
  const int64_t tiles_m = (problem.m + config.BM - 1) / config.BM, tiles_n = (problem.n + config.BN - 1) / config.BN;
  const double tiles = static_cast<double>(tiles_m) * static_cast<double>(tiles_n) * static_cast<double>(problem.batch);
  const KernelCost kernel(config, device);
  const CostProblem seen(problem);
  const ProductCost cost(kernel, seen);
  const double slots = kernel.numbers.blocks;
  // Persistent blocks that all have a tile are better shared out by stream-k.
  const double most_blocks = is_specialized(config.load) ? slots : kMostBlocksPerSlot * slots;
  const double stages = static_cast<double>(problem.k) / config.BK;
  int worse = 0;
  for (int split : kSearchedSplits) {
    if (split > 1 && (tiles * split > most_blocks || worse >= kWorseSplits)) break;
    if (split > 1 && tiles * split < kIdleShare * device.sm_count && stages > kDeepStages * split) continue;
    ++worse;
    for (const Reduction reduction : reductions_of(config, split)) {
      const Choice choice{config, split, reduction};
      const double us = cost.terms(split, reduction).us();
      if ((best && us >= best->us) || !may_run(choice, problem, device, workspace)) continue;
      best = {us, choice}, worse = 0;
    }
  }
  return best;
}

}  // namespace gemm
