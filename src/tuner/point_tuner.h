// Tunes one problem: screens candidates, tries nearby splits of k, refines, and measures the finalists with the baselines.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tuner/candidates.h"
#include "tuner/progress.h"
#include "tuner/trial_log.h"
#include "tuner/worker_session.h"

namespace gemm {

class PointTuner {
 public:
  // `stop` is asked between stages.
  PointTuner(WorkerSession& session, TrialLog& log, Progress& progress, DeviceInfo device, std::function<bool()> stop);

  // False when it was interrupted or stopped before the point was finished or skipped. Trials that the log has are not
  // repeated.
  bool tune(const Problem& problem, const std::vector<Choice>& candidates);

  // Measures these choices carefully, with the baselines; for portfolio kernels that were not finalists. False when it was
  // interrupted or stopped.
  bool measure_finally(const Problem& problem, const std::vector<Choice>& choices);

 private:
  // How a stage ended: `complete` now or by an earlier run, `skipped` when the problem cannot be measured.
  struct StageEnd {
    enum class Kind { complete, stopped, skipped } kind = Kind::complete;
    std::string why;  // of skipped
    bool complete() const { return kind == Kind::complete; }
  };
  StageEnd run_stage(const Problem& problem, const std::vector<Choice>& choices, Stage stage);
  bool give_up(const Problem& problem, const StageEnd& end);
  std::vector<Choice> best_of(const Problem& problem, Stage stage, const std::vector<Choice>& among, size_t most) const;

  WorkerSession& session_;
  TrialLog& log_;
  Progress& progress_;
  DeviceInfo device_;
  std::function<bool()> stop_;
};

}  // namespace gemm
