#include "tuner/calibration.h"

#include <algorithm>

#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

constexpr size_t kPrefetchedProblems = 32;  // whose kernels are compiled ahead: more than all compilers need to be busy

}  // namespace

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

void Calibrator::run(const std::vector<CalibrationProblem>& problems, const std::vector<std::vector<Choice>>& choices) {
  tasks_.clear();
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
  progress_.expect(tasks_.size());
  session_.on_restart = [this] { prefetched_ = current_, prefetch_up_to(current_ + kPrefetchedProblems); };
  for (; current_ < tasks_.size() && !stop_(); ++current_) {
    prefetch_up_to(current_ + kPrefetchedProblems);
    const auto& [problem, all] = tasks_[current_];
    const std::vector<Choice> choices = without_hung(all);
    // A contest proves nothing unless everyone takes part.
    const bool is_of_use = stage == Stage::certificate ? choices.size() == all.size() : !choices.empty();
    if (!is_of_use && stage == Stage::certificate)
      progress_.message("no part of the certificate, since a kernel hangs: " + to_string(problem));
    if (is_of_use && !measure(problem, choices, stage)) break;
    progress_.point_done();
  }
  session_.on_restart = nullptr;
}

std::vector<Choice> Calibrator::without_hung(std::vector<Choice> choices) const {
  std::erase_if(choices, [&](const Choice& choice) { return hung_.count(config_id(choice.config)) != 0; });
  return choices;
}

// A kernel of the table that is wrong or hangs is news, if it has not been said of this one before.
void Calibrator::failed(const Choice& choice, const Problem& problem, const Outcome& outcome) {
  progress_.failed();
  if (outcome.invalidity == Invalidity::timeout && hung_.insert(config_id(choice.config)).second)
    progress_.message("a kernel of the table ran or was built beyond its time limit, and is left out from here on: " +
                      to_string(choice) + " on " + to_string(problem));
  if (outcome.invalidity == Invalidity::correctness && wrong_kernels_.insert(config_id(choice.config)).second)
    progress_.message("a kernel of the table is wrong: " + to_string(choice) + " on " + to_string(problem) + ": " +
                      outcome.reason);
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
    if (!outcome.correct()) failed(choice, problem, outcome);
    progress_.stage(to_string(stage), ++done, choices.size());
  };
  const StageResult result =
      session_.run(problem, choices, stage, on_outcome, [this](const std::string& what) { progress_.message(what); });
  if (result.interrupted) return false;
  if (!result.timed_alone)
    for (const Trial& trial : contest) log_.add(trial);
  if (result.skipped.empty())
    log_.add_baselines(problem, result.baselines);
  else
    progress_.message("skipped " + to_string(problem) + ": " + result.skipped);
  return true;
}

}  // namespace gemm
