// A worker that is there whenever it is needed: started again after a crash or a hang, which is charged to the candidate
// that was in flight.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/protocol.h"
#include "tuner/worker_process.h"

namespace gemm {

struct StageResult {
  bool interrupted = false;
  std::string skipped;  // why the problem cannot be measured, or empty
  BaselineTimes baselines;
  bool timed_alone = false;  // after a loss, though the stage times side by side
};

class WorkerSession {
 public:
  // `timeout_s`: how long a candidate may be in flight, beside what its arithmetic takes.
  WorkerSession(std::vector<std::string> command, double timeout_s);

  // Failure: the device could not be opened, with the reason.
  Result<Reply> start();

  // Compile these in the background.
  void prefetch(const Problem& problem, const std::vector<Choice>& choices);
  // Called after a restart, to prefetch again.
  std::function<void()> on_restart;

  // Runs one stage; `on_outcome` gets each candidate's outcome once, and `on_loss`, when the worker was lost, what it was
  // doing and how it ended, for a person to read. Throws Error when no worker can be started any more.
  using OutcomeHandler = std::function<void(const Choice&, const Outcome&)>;
  using LossHandler = std::function<void(const std::string&)>;
  StageResult run(const Problem& problem, const std::vector<Choice>& choices, Stage stage, const OutcomeHandler& on_outcome,
                  const LossHandler& on_loss);

  int restarts() const { return restarts_; }

 private:
  struct InFlight {
    int index = -1;
    Phase phase = Phase::setup;
  };
  // How an attempt at a stage ended; `why` says so for a worker that was lost.
  struct Attempt {
    enum class End { done, lost, interrupted } end = End::done;
    bool hung = false;
    std::string why;
    InFlight in_flight;
  };
  Attempt attempt(const Problem& problem, std::vector<Choice>& pending, Stage stage, const OutcomeHandler& on_outcome,
                  StageResult& result);
  double limit_s(const Problem& problem, const InFlight& in_flight, size_t candidates) const;
  void restart();

  std::vector<std::string> command_;
  double timeout_s_;
  std::unique_ptr<WorkerProcess> process_;
  double flops_per_s_ = 1e12;  // of a slow kernel on this device
  bool prefetching_ = true;
  int restarts_ = 0;
};

}  // namespace gemm
