// Times the portfolio's kernels on random problems, with cuBLAS: what the selector is judged by, and fitted on beside the
// tuned points.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tuner/calibration_problems.h"
#include "tuner/certificate.h"
#include "tuner/progress.h"
#include "tuner/trial_log.h"
#include "tuner/worker_session.h"

namespace gemm {

class Calibrator {
 public:
  // `stop` is asked between problems. Kernels in `hung` are left out, since each hang costs the whole time limit; those that
  // hang come into it.
  Calibrator(WorkerSession& session, TrialLog& log, Progress& progress, std::function<bool()> stop,
             std::set<std::string>& hung)
      : session_(session), log_(log), progress_(progress), stop_(std::move(stop)), hung_(hung) {}

  // Measures what the log does not have yet of the choices for each problem. Problems that were tuned, for example by hand,
  // are passed over.
  void run(const std::vector<CalibrationProblem>& problems, const std::vector<std::vector<Choice>>& choices);
  // Times the choices of each contest side by side.
  void hold(const std::vector<Contest>& contests);

 private:
  void run_tasks(Stage stage);
  void prefetch_up_to(size_t end);
  bool measure(const Problem& problem, const std::vector<Choice>& choices, Stage stage);
  void failed(const Choice& choice, const Problem& problem, const Outcome& outcome);
  std::vector<Choice> without_hung(std::vector<Choice> choices) const;
  bool is_tuned(const Problem& problem) const;
  std::vector<Choice> missing(const Problem& problem, const std::vector<Choice>& choices) const;

  WorkerSession& session_;
  TrialLog& log_;
  Progress& progress_;
  std::function<bool()> stop_;
  std::set<std::string>& hung_;
  struct Task {
    Problem problem;
    std::vector<Choice> choices;
  };
  std::vector<Task> tasks_;  // of this run
  size_t current_ = 0, prefetched_ = 0;
  std::set<std::string> wrong_kernels_;
};

}  // namespace gemm
