// Times the portfolio's kernels on random problems, with cuBLAS: what the selector is fitted on and judged by.
#pragma once

#include <functional>
#include <vector>

#include "tuner/calibration_problems.h"
#include "tuner/certificate.h"
#include "tuner/progress.h"
#include "tuner/trial_log.h"
#include "tuner/worker_session.h"

namespace gemm {

// For each problem every configuration that may serve it, with the split that the model likes best and, where it is close to
// the best of all, another one. Left out is what the model finds hopeless, and kernels that would be compiled for a few
// problems and are not among the best of any.
std::vector<std::vector<Choice>> calibration_choices(const std::vector<CalibrationProblem>& problems,
                                                     const std::vector<KernelConfig>& portfolio, const DeviceInfo& device);

class Calibrator {
 public:
  // `stop` is asked between problems.
  Calibrator(WorkerSession& session, TrialLog& log, Progress& progress, DeviceInfo device, std::function<bool()> stop)
      : session_(session), log_(log), progress_(progress), device_(std::move(device)), stop_(std::move(stop)) {}

  // Measures what the log does not have yet. Problems that were tuned, for example by hand, are passed over.
  void run(const std::vector<CalibrationProblem>& problems, const std::vector<KernelConfig>& portfolio);
  // Times the choices of each contest side by side.
  void hold(const std::vector<Contest>& contests);

 private:
  void run_tasks(Stage stage);
  void prefetch_up_to(size_t end);
  bool measure(const Problem& problem, const std::vector<Choice>& choices, Stage stage);
  bool is_tuned(const Problem& problem) const;
  std::vector<Choice> missing(const Problem& problem, const std::vector<Choice>& choices) const;

  WorkerSession& session_;
  TrialLog& log_;
  Progress& progress_;
  DeviceInfo device_;
  std::function<bool()> stop_;
  struct Task {
    Problem problem;
    std::vector<Choice> choices;
  };
  std::vector<Task> tasks_;  // of this run
  size_t current_ = 0, prefetched_ = 0;
};

}  // namespace gemm
