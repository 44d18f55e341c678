// The calibration of one run of the tuner: what is timed on random problems, step by step, so that the table gets its model
// and its certificate.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tuner/calibration_problems.h"
#include "tuner/table_builder.h"
#include "tuner/trial_log.h"
#include "tuner/worker_session.h"

namespace gemm {

class CalibrationRun {
 public:
  // On so many random problems; `terminal`: progress on one line. `stop` is asked between problems.
  CalibrationRun(WorkerSession& session, TrialLog& log, DeviceInfo device, size_t problems, bool terminal,
                 std::function<bool()> stop);

  // Times these kernels on some of the problems,
  void survey(const std::vector<KernelConfig>& kernels);
  // and the table's kernels on the others: those that seem fastest by what was surveyed.
  void time_favourites(const Table& table);
  // Times what the selector of a table with a model chooses beside the fastest others.
  void hold_contests(const Table& table);

  // Of this run and of those before it that the log has.
  CalibrationResults results() const;
  // What results() has of the survey, at a fraction of its cost.
  std::vector<PointResult> surveyed() const;
  // Problems on which nothing was timed yet.
  size_t open_problems() const;

 private:
  std::vector<CalibrationProblem> problems(bool surveyed) const;
  const Evidence* evidence_of(const CalibrationProblem& one) const;
  void time_choices(const std::vector<CalibrationProblem>& problems, const std::vector<std::vector<Choice>>& choices);

  WorkerSession& session_;
  TrialLog& log_;
  DeviceInfo device_;
  bool terminal_;
  std::function<bool()> stop_;
  std::vector<CalibrationProblem> problems_;
  std::set<std::string> hung_kernels_;  // in this run
};

}  // namespace gemm
