// The calibration of one run of the tuner: what is timed on random problems, step by step, so that the table gets its model
// and its certificate.
#pragma once

#include <functional>
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

  // Times the table's kernels: all of them on some problems, and on the others those that seem fastest by then.
  void time_kernels(const Table& table);
  // Times what the selector of a table with a model chooses beside the fastest others.
  void hold_contests(const Table& table);

  // Of this run and of those before it that the log has.
  CalibrationResults results() const;
  // Problems on which nothing was timed yet.
  size_t open_problems() const;

 private:
  void time_favourites(const Table& table, const std::vector<CalibrationProblem>& problems);
  void time_choices(const std::vector<CalibrationProblem>& problems, const std::vector<std::vector<Choice>>& choices);

  WorkerSession& session_;
  TrialLog& log_;
  DeviceInfo device_;
  bool terminal_;
  std::function<bool()> stop_;
  std::vector<CalibrationProblem> problems_;
};

}  // namespace gemm
