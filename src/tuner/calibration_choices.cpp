#include "tuner/calibration_choices.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <span>

#include "dispatch/cost_model.h"
#include "dispatch/predictor.h"
#include "dispatch/split_search.h"
#include "kernels/kernel_spec.h"
#include "tuner/candidates.h"

namespace gemm {
namespace {

// Times the best prediction. Replayed from the log of an H200, a model fitted to what lies within 1.3, 1.45, 1.6 or 1.8
// chose equally well; a certificate must not overlook the fastest.
constexpr double kHopeless = 1.4, kHopelessToCertify = 1.8;
constexpr double kSecondSplitWithin = 1.25;  // of the best prediction: kernels that are timed with another split too
constexpr double kSplitWithin = 1.3;         // of the same kernel's best split: splits that may be that other one
constexpr size_t kSplitsInTurn = 3;          // the best of those, which take turns from problem to problem
constexpr size_t kFewProblems = 110;         // one in so many: kernels for fewer are compiled only if they are
constexpr double kAmongTheBest = 1.2;        // within this factor of the best prediction of one of them

// Of the kernel that is compiled.
std::string kernel_name(const Choice& choice, const Problem& problem) {
  return variant_spec(variant_of(choice, problem, {})).name;
}

// Another split or reduction of the same kernel that is predicted to be nearly as good.
std::optional<PredictedChoice> other_split(const PredictedChoice& best, const Problem& problem, const DeviceInfo& device,
                                           size_t number) {
  std::vector<PredictedChoice> close;
  for (const Choice& choice : split_neighbours(best.choice, problem, device))
    if (kernel_name(choice, problem) == kernel_name(best.choice, problem))
      if (const double us = predicted_us(device, choice, problem); us < kSplitWithin * best.us)
        close.push_back({us, choice});
  if (close.empty()) return std::nullopt;
  std::stable_sort(close.begin(), close.end(), [](const auto& a, const auto& b) { return a.us < b.us; });
  return close[number % std::min(kSplitsInTurn, close.size())];
}

// What may be timed for one problem; `us` is predicted.
std::vector<PredictedChoice> choices_for(const CalibrationProblem& one, const std::vector<KernelConfig>& portfolio,
                                         const DeviceInfo& device, size_t number) {
  const Problem& problem = one.problem;
  std::vector<PredictedChoice> predicted;
  double fastest_us = std::numeric_limits<double>::infinity();
  for (const KernelConfig& config : portfolio)
    if (const auto best = best_split(config, problem, device, kWorkspaceBytes)) {
      predicted.push_back(*best);
      fastest_us = std::min(fastest_us, best->us);
    }
  for (const Relayout relayout : relayouts_of(problem, device))
    for (const KernelConfig& config : portfolio)
      if (gains_by_relayout(config))
        if (const auto best = best_on_copies(config, relayout, problem, device, kWorkspaceBytes);
            best && best->us < kSecondSplitWithin * fastest_us)
          predicted.push_back(*best);
  const double hopeless_us = fastest_us * (one.certificate ? kHopelessToCertify : kHopeless);
  std::vector<PredictedChoice> choices;
  for (const PredictedChoice& best : predicted) {
    if (best.us > hopeless_us) continue;
    choices.push_back(best);
    if (best.us > kSecondSplitWithin * fastest_us || best.choice.relayout != Relayout::none) continue;
    if (const auto other = other_split(best, problem, device, number)) choices.push_back(*other);
  }
  return choices;
}

}  // namespace

std::vector<std::vector<Choice>> survey_choices(const std::vector<CalibrationProblem>& problems,
                                                const std::vector<KernelConfig>& portfolio, const DeviceInfo& device) {
  struct Use {
    size_t problems = 0;
    double closest = std::numeric_limits<double>::infinity();  // to the best prediction of a problem
    bool worth_compiling(size_t all) const { return problems * kFewProblems >= all || closest < kAmongTheBest; }
  };
  std::map<std::string, Use> uses;
  std::vector<std::vector<std::pair<const Use*, Choice>>> all;
  for (size_t i = 0; i < problems.size(); ++i) {
    const std::vector<PredictedChoice> choices = choices_for(problems[i], portfolio, device, i);
    const auto faster = [](const PredictedChoice& a, const PredictedChoice& b) { return a.us < b.us; };
    const auto fastest = std::min_element(choices.begin(), choices.end(), faster);
    std::set<std::string> names;
    all.emplace_back();
    for (const PredictedChoice& choice : choices) {
      const std::string name = kernel_name(choice.choice, problems[i].problem);
      Use& use = uses[name];
      use.problems += names.insert(name).second;
      use.closest = std::min(use.closest, choice.us / fastest->us);
      all.back().emplace_back(&use, choice.choice);
    }
  }
  std::vector<std::vector<Choice>> kept;
  for (const auto& choices : all) {
    kept.emplace_back();
    for (const auto& [use, choice] : choices)
      if (use->worth_compiling(problems.size())) kept.back().push_back(choice);
  }
  return kept;
}

std::vector<std::vector<Choice>> favourite_choices(const std::vector<CalibrationProblem>& problems, const Table& table) {
  const Predictor predictor(table, table.device);
  std::vector<std::vector<Choice>> all;
  for (size_t i = 0; i < problems.size(); ++i) {
    const Problem& problem = problems[i].problem;
    const Predictor::Predictions predictions = predictor.predict(problem, kWorkspaceBytes);
    std::vector<Choice>& choices = all.emplace_back();
    for (const Predictor::Prediction& one : std::span(predictions.best).first(predictions.count)) {
      choices.push_back(one.choice);
      if (one.choice.relayout != Relayout::none) continue;
      const PredictedChoice by_cost_model{predicted_us(table.device, one.choice, problem), one.choice};
      if (const auto other = other_split(by_cost_model, problem, table.device, i)) choices.push_back(other->choice);
    }
  }
  return all;
}

}  // namespace gemm
