#include "tuner/calibration_run.h"

#include <cstdio>

#include "tuner/calibration.h"
#include "tuner/calibration_choices.h"

namespace gemm {

CalibrationRun::CalibrationRun(WorkerSession& session, TrialLog& log, DeviceInfo device, size_t problems, bool terminal,
                               std::function<bool()> stop)
    : session_(session),
      log_(log),
      device_(std::move(device)),
      terminal_(terminal),
      stop_(std::move(stop)),
      problems_(calibration_problems(problems, device_.emulated)) {}

std::vector<CalibrationProblem> CalibrationRun::problems(bool surveyed) const {
  std::vector<CalibrationProblem> some;
  for (const CalibrationProblem& one : problems_)
    if (one.survey == surveyed) some.push_back(one);
  return some;
}

void CalibrationRun::survey(const std::vector<KernelConfig>& kernels) {
  if (kernels.empty()) return;
  const std::vector<CalibrationProblem> some = problems(true);
  std::fprintf(stderr, "timing %zu kernels on %zu random problems\n", kernels.size(), some.size());
  time_choices(some, survey_choices(some, kernels, device_));
}

// Only what was surveyed says which ones they are, so that the same command finds the same in the log, and one with more
// shapes most of it.
void CalibrationRun::time_favourites(const Table& table) {
  const std::vector<CalibrationProblem> others = problems(false);
  if (others.empty()) return;
  Table fitted = table;
  fit_table(fitted, {surveyed(), {}, {}}, {});
  if (!fitted.learned_model) return;
  std::fprintf(stderr, "timing those that seem fastest by then on %zu more\n", others.size());
  time_choices(others, favourite_choices(others, fitted));
}

void CalibrationRun::time_choices(const std::vector<CalibrationProblem>& problems,
                                  const std::vector<std::vector<Choice>>& choices) {
  Progress progress(terminal_, problems.size());
  Calibrator(session_, log_, progress, stop_, hung_kernels_).run(problems, choices);
}

// What the certificate compares depends on the model that is fitted to all the others.
void CalibrationRun::hold_contests(const Table& table) {
  std::vector<Contest> contests = open_contests(table, results().certificate);
  // Open for ever where the choice itself was wrong, or could not be built.
  std::erase_if(contests, [&](const Contest& contest) {
    return log_.evidence(contest.problem).find(contest.choices.front(), Stage::certificate) != nullptr;
  });
  if (contests.empty()) return;
  std::fprintf(stderr, "timing the selector's choice and its rivals side by side on %zu others\n", contests.size());
  Progress progress(terminal_, contests.size());
  Calibrator(session_, log_, progress, stop_, hung_kernels_).hold(contests);
}

// Nothing where nothing was timed, or where the problem was tuned as well.
const Evidence* CalibrationRun::evidence_of(const CalibrationProblem& one) const {
  const auto found = log_.evidence().find(to_string(one.problem));
  return found != log_.evidence().end() && found->second.only_calibration() ? &found->second : nullptr;
}

std::vector<PointResult> CalibrationRun::surveyed() const {
  std::vector<PointResult> results;
  for (const CalibrationProblem& one : problems_)
    if (const Evidence* evidence = evidence_of(one); evidence != nullptr && one.survey && !one.certificate)
      results.push_back(evaluate(*evidence));
  return results;
}

CalibrationResults CalibrationRun::results() const {
  CalibrationResults results{surveyed(), {}, {}};
  for (const CalibrationProblem& one : problems_) {
    const Evidence* evidence = evidence_of(one);
    if (evidence == nullptr) continue;
    if (one.certificate)
      results.certificate.push_back({evaluate(*evidence), one.box});
    else if (!one.survey)
      results.favourites.push_back(evaluate(*evidence));
  }
  return results;
}

size_t CalibrationRun::open_problems() const {
  size_t open = 0;
  for (const CalibrationProblem& one : problems_) open += log_.evidence().count(to_string(one.problem)) == 0;
  return open;
}

}  // namespace gemm
