#include "tuner/point_tuner.h"

#include <algorithm>

#include "tuner/points.h"
#include "tuner/statistics.h"

namespace gemm {
namespace {

constexpr size_t kParents = 4;              // the best of the screen whose neighbours are tried
constexpr size_t kNeighboursPerParent = 4;  // splits and reductions of each, or copies of its operands
constexpr size_t kMostRefined = 12;
constexpr size_t kFinalists = 5;

void add_new(std::vector<Choice>& choices, const std::vector<Choice>& more, size_t most) {
  for (size_t i = 0; i < std::min(most, more.size()); ++i)
    if (std::find(choices.begin(), choices.end(), more[i]) == choices.end()) choices.push_back(more[i]);
}

}  // namespace

PointTuner::PointTuner(WorkerSession& session, TrialLog& log, Progress& progress, DeviceInfo device,
                       std::function<bool()> stop)
    : session_(session), log_(log), progress_(progress), device_(std::move(device)), stop_(std::move(stop)) {}

// Right choices by median time, as far as the stage was measured.
std::vector<Choice> PointTuner::best_of(const Problem& problem, Stage stage, const std::vector<Choice>& among,
                                        size_t most) const {
  std::vector<std::pair<double, Choice>> timed;
  const Evidence& evidence = log_.evidence(problem);
  for (const Choice& choice : among) {
    const Trial* trial = evidence.find(choice, stage);
    if (trial != nullptr && trial->outcome.correct()) timed.emplace_back(summarise(trial->outcome.times_us).median, choice);
  }
  std::stable_sort(timed.begin(), timed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Choice> best;
  for (size_t i = 0; i < std::min(most, timed.size()); ++i) best.push_back(timed[i].second);
  return best;
}

PointTuner::StageEnd PointTuner::run_stage(const Problem& problem, const std::vector<Choice>& choices, Stage stage) {
  if (stop_()) return {StageEnd::Kind::stopped, {}};
  std::vector<Choice> missing;
  for (const Choice& choice : choices)
    if (log_.evidence(problem).find(choice, stage) == nullptr) missing.push_back(choice);
  // Finalists and baselines are only comparable when they were measured together.
  if (stage == Stage::finals) missing = choices;
  if (missing.empty() && stage != Stage::finals) return {};

  size_t done = 0;
  const auto on_outcome = [&](const Choice& choice, const Outcome& outcome) {
    log_.add({utc_timestamp(), problem, choice, stage, outcome});
    if (!outcome.correct()) progress_.failed();
    progress_.stage(to_string(stage), ++done, missing.size());
  };
  const StageResult result =
      session_.run(problem, missing, stage, on_outcome, [this](const std::string& what) { progress_.message(what); });
  if (result.interrupted) return {StageEnd::Kind::stopped, {}};
  if (!result.skipped.empty()) {
    progress_.message("skipped " + to_string(problem) + ": " + result.skipped);
    return {StageEnd::Kind::skipped, result.skipped};
  }
  if (stage == Stage::finals) log_.add_baselines(problem, result.baselines);
  return {};
}

// After a stage that is not complete: whether the next problem may be tuned.
bool PointTuner::give_up(const Problem& problem, const StageEnd& end) {
  if (end.kind == StageEnd::Kind::stopped) return false;
  log_.skip(problem, end.why);
  return true;
}

bool PointTuner::tune(const Problem& problem, const std::vector<Choice>& candidates) {
  progress_.point(to_string(problem));
  std::vector<Choice> screened = candidates;
  StageEnd end = run_stage(problem, screened, Stage::screen);
  if (!end.complete()) return give_up(problem, end);
  // Copies of operands last, since a kernel is worth trying with them once its best way to share k is known.
  for (const auto& neighbours_of : {split_neighbours, relayout_neighbours}) {
    for (const Choice& parent : best_of(problem, Stage::screen, screened, kParents))
      add_new(screened, neighbours_of(parent, problem, device_), kNeighboursPerParent);
    end = run_stage(problem, screened, Stage::screen);
    if (!end.complete()) return give_up(problem, end);
  }

  const size_t third = std::clamp<size_t>(screened.size() / 3, kFinalists, kMostRefined);
  const std::vector<Choice> refined = best_of(problem, Stage::screen, screened, third);
  if (!refined.empty()) end = run_stage(problem, refined, Stage::refine);
  if (!end.complete()) return give_up(problem, end);

  end = run_stage(problem, best_of(problem, Stage::refine, refined, kFinalists), Stage::finals);
  if (!end.complete()) return give_up(problem, end);
  const PointResult result = evaluate(log_.evidence(problem));
  if (result.options.empty()) {
    progress_.message("skipped " + to_string(problem) + ": no kernel was right; see the trial log");
    log_.skip(problem, "no kernel was right");
    return true;
  }
  progress_.best(result.options.front().time_us.median, result.cublas_us.value_or(0));
  log_.finish(problem);
  return true;
}

bool PointTuner::measure_finally(const Problem& problem, const std::vector<Choice>& choices) {
  progress_.point(to_string(problem));
  return run_stage(problem, choices, Stage::finals).kind != StageEnd::Kind::stopped;
}

}  // namespace gemm
