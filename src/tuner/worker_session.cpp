#include "tuner/worker_session.h"

#include <algorithm>

#include "tuner/interrupt.h"

namespace gemm {
namespace {

constexpr double kHelloSeconds = 120;  // opening a GPU and its libraries
constexpr double kBuildSeconds = 120;  // compiling one kernel
constexpr double kRunsOfACandidate = 60;
constexpr double kRunsOfAFinalist = 200;
constexpr double kReferenceSlowdown = 20;  // FP64 and without any tuning

// "timing CHOICE in turns with others"
std::string activity(Phase phase, const Choice* choice) {
  const std::string what = choice ? to_string(*choice) : "";
  switch (phase) {
    case Phase::setup: return "setting up the problem";
    case Phase::build: return choice ? "building " + what : "between two kernels";
    case Phase::run: return choice ? "checking or timing " + what : "about to time kernels in turns";
    case Phase::turns: return "timing " + (choice ? what : "a baseline") + " in turns with others";
  }
  return "doing something else";
}

}  // namespace

WorkerSession::WorkerSession(std::vector<std::string> command, double timeout_s)
    : command_(std::move(command)), timeout_s_(timeout_s) {}

Result<Reply> WorkerSession::start() {
  Result<std::unique_ptr<WorkerProcess>> process = WorkerProcess::start(command_);
  if (!process) return Failure{process.error()};
  process_ = std::move(*process);
  std::string line;
  const WorkerProcess::Status status = process_->receive(line, kHelloSeconds);
  if (status == WorkerProcess::Status::interrupted) return Failure{"interrupted"};
  const std::optional<Reply> reply = status == WorkerProcess::Status::line ? reply_from_line(line) : std::nullopt;
  if (!reply) {
    const std::string how = process_->end();
    process_.reset();
    return Failure{"the worker process did not start (" + how + ")"};
  }
  if (reply->kind == Reply::Kind::failed) {
    process_.reset();
    return Failure{reply->message};
  }
  // A kernel at a tenth of the FP32 peak (128 lanes of a multiply and an add) is slow enough for any time limit.
  const DeviceInfo& device = reply->device;
  flops_per_s_ = device.emulated ? 1e6 : 0.1 * 256 * device.sm_count * std::max(1, device.sm_clock_mhz) * 1e6;
  return *reply;
}

void WorkerSession::prefetch(const Problem& problem, const std::vector<Choice>& choices) {
  if (process_ && prefetching_ && !choices.empty())
    process_->send(to_line(Request{Request::Kind::prepare, problem, choices}));
}

// A worker takes a moment to start, and a crash must not be paid for twice: so only when one is needed.
void WorkerSession::restart() {
  ++restarts_;
  const Result<Reply> hello = start();
  if (!hello && interrupt_signal() == 0) throw Error("cannot start the worker again: " + hello.error());
  if (prefetching_ && on_restart) on_restart();
}

double WorkerSession::limit_s(const Problem& problem, const InFlight& in_flight, size_t candidates) const {
  const double run_s = problem.flops() / flops_per_s_;
  if (in_flight.phase == Phase::setup) return 3 * timeout_s_ + kReferenceSlowdown * run_s;
  if (in_flight.phase == Phase::build) return kBuildSeconds;
  if (in_flight.index >= 0 || in_flight.phase == Phase::turns) return timeout_s_ + kRunsOfACandidate * run_s;
  return 3 * timeout_s_ + kRunsOfAFinalist * static_cast<double>(candidates + 2) * run_s;
}

WorkerSession::Attempt WorkerSession::attempt(const Problem& problem, std::vector<Choice>& pending, Stage stage,
                                              const OutcomeHandler& on_outcome, StageResult& result) {
  Attempt attempt;
  const std::vector<Choice> sent = pending;
  process_->send(to_line(Request{Request::Kind::run, problem, sent, stage, prefetching_}));
  while (true) {
    std::string line;
    const WorkerProcess::Status status = process_->receive(line, limit_s(problem, attempt.in_flight, sent.size()));
    if (status == WorkerProcess::Status::interrupted) {
      attempt.end = Attempt::End::interrupted;
      return attempt;
    }
    const std::optional<Reply> reply = status == WorkerProcess::Status::line ? reply_from_line(line) : std::nullopt;
    if (!reply || reply->kind == Reply::Kind::failed) {
      attempt.end = Attempt::End::lost;
      attempt.hung = status == WorkerProcess::Status::timeout;
      const std::string how = process_->end();
      attempt.why = reply ? reply->message : attempt.hung ? "ran longer than its time limit" : "the worker ended: " + how;
      process_.reset();
      return attempt;
    }
    switch (reply->kind) {
      case Reply::Kind::begun: attempt.in_flight = {reply->index, reply->phase}; break;
      case Reply::Kind::finished: {
        const Choice& choice = sent.at(static_cast<size_t>(reply->index));
        std::erase(pending, choice);
        on_outcome(choice, reply->outcome);
        attempt.in_flight = {-1, Phase::build};  // between two candidates
        break;
      }
      case Reply::Kind::baselines: result.baselines = reply->baselines; break;
      case Reply::Kind::skipped: result.skipped = reply->message; break;
      default: return attempt;
    }
  }
}

StageResult WorkerSession::run(const Problem& problem, const std::vector<Choice>& choices, Stage stage,
                               const OutcomeHandler& on_outcome, const LossHandler& on_loss) {
  StageResult result;
  std::vector<Choice> pending = choices;
  int lost_as_a_whole = 0;
  bool first = true;
  while ((first || !pending.empty()) && !result.interrupted && result.skipped.empty()) {
    first = false;
    if (!process_) restart();
    if (interrupt_signal() != 0) {
      result.interrupted = true;
      break;
    }
    const std::vector<Choice> sent = pending;
    const Attempt end = attempt(problem, pending, stage, on_outcome, result);
    if (end.end == Attempt::End::interrupted) result.interrupted = true;
    if (end.end != Attempt::End::lost) continue;
    const int index = end.in_flight.index;
    const Choice* const in_flight = index >= 0 ? &sent.at(static_cast<size_t>(index)) : nullptr;
    on_loss("worker lost on " + to_string(problem) + " while " + activity(end.in_flight.phase, in_flight) + ": " + end.why);
    // Among kernels; a baseline is no fault of theirs.
    const bool in_turns = end.in_flight.phase == (in_flight ? Phase::turns : Phase::run);
    if (in_flight && !in_turns) {
      // Background compilers crash in the same process: without them, the same again is this candidate's own fault.
      if (end.in_flight.phase == Phase::build && prefetching_) {
        prefetching_ = false;
        continue;
      }
      Outcome outcome;
      outcome.invalidity = end.hung ? Invalidity::timeout : Invalidity::runtime;
      outcome.reason = end.why;
      std::erase(pending, *in_flight);
      on_outcome(*in_flight, outcome);
    } else if (in_turns && pending.size() > 1) {
      // Lost while all were interleaved: each alone shows which one it was.
      result.timed_alone = true;
      for (const Choice& choice : std::vector<Choice>(pending)) {
        const StageResult alone = run(problem, {choice}, stage, on_outcome, on_loss);
        if (!alone.baselines.cublas_us.empty()) result.baselines = alone.baselines;
        result.interrupted = result.interrupted || alone.interrupted;
        if (result.interrupted) break;
      }
      pending.clear();
    } else if (in_turns && pending.size() == 1) {
      Outcome outcome;
      outcome.invalidity = end.hung ? Invalidity::timeout : Invalidity::runtime;
      outcome.reason = end.why;
      on_outcome(pending.front(), outcome);
      pending.clear();
    } else if (end.in_flight.phase == Phase::build) {
      continue;  // a failed device, already charged to the candidate that finished last
    } else if (++lost_as_a_whole == 2) {
      result.skipped = "measuring failed twice: " + end.why;
    } else {
      first = true;
    }
  }
  if (!prefetching_) {
    prefetching_ = true;
    if (process_ && on_restart) on_restart();
  }
  return result;
}

}  // namespace gemm
