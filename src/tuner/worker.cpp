#include "tuner/worker.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "dispatch/cost_model.h"
#include "kernels/kernel_spec.h"
#include "kernels/nvrtc_compiler.h"
#include "tuner/build_cache.h"
#include "tuner/protocol.h"
#include "tuner/statistics.h"

namespace gemm {
namespace {

// 15 threads of NVRTC took 715 MB at their peak, over 240 kernels; the tuner stays below 2 GB.
constexpr int kMostCompileThreads = 24;

constexpr int kDeviceFailed = 3;
constexpr int kMostSpillBytes = 64;  // per thread; a few spilled registers were harmless, more never won

// The device failed while a candidate ran: the context may be broken.
struct DeviceFailed {};

// Lines in and out of a socket.
class LineSocket {
 public:
  explicit LineSocket(int fd) : fd_(fd) {}

  bool read_line(std::string& line) {
    while (true) {
      if (const size_t end = received_.find('\n'); end != std::string::npos) {
        line = received_.substr(0, end);
        received_.erase(0, end + 1);
        return true;
      }
      char buffer[65536];
      const ssize_t count = read(fd_, buffer, sizeof buffer);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      received_.append(buffer, static_cast<size_t>(count));
    }
  }

  void write_line(const std::string& line) {
    const std::string text = line + "\n";
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t count = send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) std::_Exit(0);  // the coordinator is gone, and with it the reason to go on
      sent += static_cast<size_t>(count);
    }
  }

 private:
  int fd_;
  std::string received_;
};

Outcome invalid(Invalidity invalidity, const std::string& reason) {
  Outcome outcome;
  outcome.invalidity = invalidity;
  outcome.reason = reason;
  return outcome;
}

// Why a compiled kernel is not worth running, or an empty string.
std::string why_filtered(const Kernel::Resources& resources, const KernelConfig& config, Stage stage,
                         const DeviceLimits& limits) {
  // Dispatch may run what the portfolio has, so calibration has to know how slow it is.
  if (!is_of_calibration(stage) && resources.spill_bytes > kMostSpillBytes)
    return "spills " + std::to_string(resources.spill_bytes) + " bytes per thread";
  if (resources.registers * config.threads() > limits.registers_per_sm)
    return "needs " + std::to_string(resources.registers) + " registers in each of " + std::to_string(config.threads()) +
           " threads";
  return {};
}

MeasurePlan plan_of(Stage stage, double expected_us) {
  switch (stage) {
    case Stage::calibration: return plan_for(expected_us, 500, 2, 3);
    case Stage::screen: return plan_for(expected_us, 600, 2, 3);
    case Stage::certificate:
    case Stage::refine: return plan_for(expected_us, 4'000, 3, 7);
    default: return plan_for(expected_us, 40'000, 5, 21);
  }
}

class Worker {
 public:
  Worker(LineSocket& socket, BuildCache& device, BenchContext& context)
      : socket_(socket), device_(device), context_(context) {}

  void serve() {
    std::string line;
    while (socket_.read_line(line)) {
      const std::optional<Request> request = request_from_line(line);
      if (!request) throw Error("the worker got a line that it does not understand: " + line);
      if (request->kind == Request::Kind::prepare)
        prepare(*request);
      else
        run(*request);
    }
  }

 private:
  static std::vector<KernelSpec> kernels_of(const Request& request) {
    std::vector<KernelSpec> specs;
    for (const Choice& choice : request.choices) specs.push_back(variant_spec(variant_of(choice, request.problem, {})));
    return specs;
  }

  void prepare(const Request& request) {
    for (const KernelSpec& spec : kernels_of(request)) device_.prefetch(spec);
  }

  void run(const Request& request) {
    if (request.ahead) device_.prefetch_first(kernels_of(request));
    if (!set_up(request.problem)) return;
    if (request.stage == Stage::finals || is_of_calibration(request.stage))
      run_interleaved(request);
    else
      for (size_t i = 0; i < request.choices.size(); ++i) {
        Outcome outcome;
        if (const std::optional<TilePlan> plan = verified(static_cast<int>(i), request.choices[i], request.stage, outcome))
          time_alone(static_cast<int>(i), *plan, request.stage, outcome);
        finished(static_cast<int>(i), outcome);
      }
    reply(Reply::Kind::done);
  }

  bool set_up(const Problem& problem) {
    if (bench_ && bench_->problem() == problem) return true;
    begun(-1, Phase::setup);
    bench_.reset();  // frees its memory first
    Result<std::unique_ptr<ProblemBench>> bench = ProblemBench::create(context_, problem);
    std::string why = bench ? "" : bench.error();
    if (bench) {
      const Result<bool> reference = (*bench)->make_reference();
      if (!reference) why = reference.error();
    }
    if (!why.empty()) {
      Reply skipped{Reply::Kind::skipped};
      skipped.message = why;
      socket_.write_line(to_line(skipped));
      reply(Reply::Kind::done);
      return false;
    }
    bench_ = std::move(*bench);
    return true;
  }

  // Builds, filters and verifies. Nothing when the candidate is out, with the reason in `outcome`.
  std::optional<TilePlan> verified(int index, const Choice& choice, Stage stage, Outcome& outcome) {
    begun(index, Phase::build);
    const Result<TilePlan> plan = bench_->prepare(choice);
    if (!plan) {
      outcome = invalid(Invalidity::compile, plan.error());
      return std::nullopt;
    }
    outcome.compile_ms = device_.build_ms(variant_spec(plan->variant));
    const Kernel::Resources resources = plan->tile->resources();
    outcome.registers = resources.registers;
    outcome.spill_bytes = resources.spill_bytes;
    outcome.shared_bytes = shared_bytes(plan->variant) + resources.static_shared_bytes;
    if (const std::string why = why_filtered(resources, choice.config, stage, device_.info().limits); !why.empty()) {
      outcome.invalidity = Invalidity::compile;
      outcome.reason = why;
      return std::nullopt;
    }
    begun(index, Phase::run);
    try {
      // The problem first: it says more about a kernel that cannot run at all.
      Verdict verdict = bench_->verify(*plan);
      outcome.max_scaled_error = verdict.max_scaled_error;
      if (verdict.ok()) verdict = context_.verifier->check_edges(*plan, context_.scratch);
      if (verdict.ok()) return *plan;
      outcome.invalidity = verdict.launch_refused ? Invalidity::runtime : Invalidity::correctness;
      outcome.reason = verdict.reason;
    } catch (const Error& error) {
      device_failed(index, error);
    }
    return std::nullopt;
  }

  void time_alone(int index, const TilePlan& plan, Stage stage, Outcome& outcome) {
    const MeasurePlan how = plan_of(stage, floor_us(device_.info(), bench_->problem()));
    try {
      // While all processors but one compiled, 47 of 15,730 medians of two or three were more than 10 % above the shortest
      // sample, some by tens of times, and such a candidate was out.
      outcome.times_us = undisturbed([&] { return bench_->measure(plan, how); });
    } catch (const Error& error) {
      device_failed(index, error);
    }
    reject_implausible(outcome);
  }

  void run_interleaved(const Request& request) {
    std::vector<Outcome> outcomes(request.choices.size());
    std::vector<size_t> usable;
    std::vector<Workload> workloads;
    for (size_t i = 0; i < request.choices.size(); ++i) {
      const std::optional<TilePlan> plan = verified(static_cast<int>(i), request.choices[i], request.stage, outcomes[i]);
      if (!plan) {
        finished(static_cast<int>(i), outcomes[i]);
        continue;
      }
      usable.push_back(i);
      workloads.push_back(bench_->workload(*plan));
      workloads.back().on_sample = [this, i] { begun(static_cast<int>(i), Phase::turns); };
    }
    begun(-1, Phase::run);
    Comparison comparison = bench_->compare(workloads, plan_of(request.stage, floor_us(device_.info(), bench_->problem())),
                                            request.stage == Stage::finals ? Against::both : Against::cublas,
                                            [this] { begun(-1, Phase::turns); });
    for (size_t i = 0; i < usable.size(); ++i) {
      Outcome& outcome = outcomes[usable[i]];
      outcome.times_us = std::move(comparison.own[i]);
      reject_implausible(outcome);
      finished(static_cast<int>(usable[i]), outcome);
    }
    Reply baselines{Reply::Kind::baselines};
    baselines.baselines = {std::move(comparison.cublas), std::move(comparison.cublaslt_best), comparison.cublaslt_algorithm};
    socket_.write_line(to_line(baselines));
  }

  static void reject_implausible(Outcome& outcome) {
    if (plausible(outcome.times_us)) return;
    outcome.times_us.clear();
    outcome.invalidity = Invalidity::runtime;
    outcome.reason = "a measured time was not a positive number";
  }

  [[noreturn]] void device_failed(int index, const Error& error) {
    finished(index, invalid(Invalidity::runtime, error.what()));
    throw DeviceFailed{};
  }

  void begun(int index, Phase phase) {
    Reply message{Reply::Kind::begun};
    message.index = index;
    message.phase = phase;
    socket_.write_line(to_line(message));
  }

  void finished(int index, const Outcome& outcome) {
    Reply message{Reply::Kind::finished};
    message.index = index;
    message.outcome = outcome;
    socket_.write_line(to_line(message));
  }

  void reply(Reply::Kind kind) { socket_.write_line(to_line(Reply{kind})); }

  LineSocket& socket_;
  BuildCache& device_;
  BenchContext& context_;
  std::unique_ptr<ProblemBench> bench_;
};

Reply hello(const Device& device, const BenchContext& context) {
  Reply reply{Reply::Kind::hello};
  reply.device = device.info();
  reply.environment["nvrtc"] = device.info().emulated ? "none" : nvrtc_version();
  reply.environment["cublas"] = context.baselines.cublas ? context.baselines.cublas->version() : "none";
  if (!context.baselines.missing.empty()) reply.message = context.baselines.missing;
  return reply;
}

void send_failure(LineSocket& socket, const std::string& message) {
  Reply reply{Reply::Kind::failed};
  reply.message = message;
  socket.write_line(to_line(reply));
}

}  // namespace

int compile_threads(int cores) { return std::clamp(cores - 1, 1, kMostCompileThreads); }

int run_worker(int fd, const DeviceFactory& open_device, const TimeModel& time_model) {
  LineSocket socket(fd);
  try {
    Result<std::unique_ptr<Device>> opened = open_device();
    if (!opened) {
      send_failure(socket, opened.error());
      return 1;
    }
    BuildCache device(std::move(*opened), compile_threads(static_cast<int>(std::thread::hardware_concurrency())));
    Result<std::unique_ptr<BenchContext>> context = BenchContext::create(device, time_model);
    if (!context) {
      send_failure(socket, context.error());
      return 1;
    }
    socket.write_line(to_line(hello(device, **context)));
    Worker(socket, device, **context).serve();
    return 0;
  } catch (const DeviceFailed&) {
    std::_Exit(kDeviceFailed);  // destructors would use the broken device
  } catch (const std::exception& error) {
    send_failure(socket, error.what());
    std::_Exit(kDeviceFailed);
  }
}

}  // namespace gemm
