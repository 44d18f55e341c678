#include "tuner/calibration.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "dispatch/cost_model.h"
#include "dispatch/split_search.h"
#include "kernels/kernel_spec.h"
#include "tuner/candidates.h"

namespace gemm {
namespace {

constexpr double kHopeless = 1.8;            // times the best prediction: timing more of them did not make choices better
constexpr double kSecondSplitWithin = 1.25;  // of the best prediction: kernels that are timed with another split too
constexpr double kSplitWithin = 1.3;         // of the same kernel's best split: splits that may be that other one
constexpr size_t kSplitsInTurn = 3;          // the best of those, which take turns from problem to problem
constexpr size_t kPrefetchedProblems = 32;   // whose kernels are compiled ahead: more than all compilers need to be busy
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
std::vector<PredictedChoice> choices_for(const Problem& problem, const std::vector<KernelConfig>& portfolio,
                                         const DeviceInfo& device, size_t number) {
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
  const double hopeless_us = fastest_us * kHopeless;
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

std::vector<std::vector<Choice>> calibration_choices(const std::vector<CalibrationProblem>& problems,
                                                     const std::vector<KernelConfig>& portfolio, const DeviceInfo& device) {
  struct Use {
    size_t problems = 0;
    double closest = std::numeric_limits<double>::infinity();  // to the best prediction of a problem
    bool worth_compiling(size_t all) const { return problems * kFewProblems >= all || closest < kAmongTheBest; }
  };
  std::map<std::string, Use> uses;
  std::vector<std::vector<std::pair<const Use*, Choice>>> all;
  for (size_t i = 0; i < problems.size(); ++i) {
    const std::vector<PredictedChoice> choices = choices_for(problems[i].problem, portfolio, device, i);
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

bool Calibrator::is_tuned(const Problem& problem) const {
  const auto found = log_.evidence().find(to_string(problem));
  return found != log_.evidence().end() && !found->second.trials.empty() && !found->second.only_calibration();
}

std::vector<Choice> Calibrator::missing(const Problem& problem, const std::vector<Choice>& choices) const {
  const auto found = log_.evidence().find(to_string(problem));
  if (found == log_.evidence().end()) return choices;
  std::vector<Choice> missing;
  for (const Choice& choice : choices)
    if (found->second.find(choice, Stage::calibration) == nullptr) missing.push_back(choice);
  return missing;
}

void Calibrator::prefetch_up_to(size_t end) {
  for (; prefetched_ < std::min(end, tasks_.size()); ++prefetched_)
    session_.prefetch(tasks_[prefetched_].problem, tasks_[prefetched_].choices);
}

void Calibrator::run(const std::vector<CalibrationProblem>& problems, const std::vector<KernelConfig>& portfolio) {
  tasks_.clear();
  const std::vector<std::vector<Choice>> choices = calibration_choices(problems, portfolio, device_);
  for (size_t i = 0; i < problems.size(); ++i) {
    const Problem& problem = problems[i].problem;
    std::vector<Choice> left = missing(problem, choices[i]);
    if (!is_tuned(problem) && !left.empty()) tasks_.push_back({problem, std::move(left)});
  }
  run_tasks(Stage::calibration);
}

void Calibrator::hold(const std::vector<Contest>& contests) {
  tasks_.clear();
  for (const Contest& contest : contests) tasks_.push_back({contest.problem, contest.choices});
  run_tasks(Stage::certificate);
}

void Calibrator::run_tasks(Stage stage) {
  current_ = prefetched_ = 0;
  session_.on_restart = [this] { prefetched_ = current_, prefetch_up_to(current_ + kPrefetchedProblems); };
  for (; current_ < tasks_.size() && !stop_(); ++current_) {
    prefetch_up_to(current_ + kPrefetchedProblems);
    if (!measure(tasks_[current_].problem, tasks_[current_].choices, stage)) break;
    progress_.point_done();
  }
  session_.on_restart = nullptr;
}

bool Calibrator::measure(const Problem& problem, const std::vector<Choice>& choices, Stage stage) {
  progress_.point(to_string(problem));
  size_t done = 0;
  std::vector<Trial> contest;  // logged as a whole: what was timed alone proves nothing
  const auto on_outcome = [&](const Choice& choice, const Outcome& outcome) {
    const Trial trial{utc_timestamp(), problem, choice, stage, outcome};
    if (stage == Stage::certificate)
      contest.push_back(trial);
    else
      log_.add(trial);
    if (!outcome.correct()) progress_.failed();
    progress_.stage(to_string(stage), ++done, choices.size());
  };
  const StageResult result =
      session_.run(problem, choices, stage, on_outcome, [this](const std::string& what) { progress_.message(what); });
  if (result.interrupted) return false;
  for (const Trial& trial : contest) log_.add(trial);
  if (result.skipped.empty())
    log_.add_baselines(problem, result.baselines);
  else
    progress_.message("skipped " + to_string(problem) + ": " + result.skipped);
  return true;
}

}  // namespace gemm
