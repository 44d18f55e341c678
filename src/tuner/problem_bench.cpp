#include "tuner/problem_bench.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dispatch/cost_model.h"
#include "kernels/launch_arithmetic.h"
#include "tuner/candidates.h"
#include "tuner/statistics.h"

namespace gemm {
namespace {

constexpr int kMostHeuristics = 16;

// Larger problems fit no device; what is computed from smaller ones stays far within 64 bits.
constexpr double kMostBytes = 1e17;

// Of the operands with their padding, in floating point, since it may exceed 64 bits.
double stored_bytes(const Problem& p) {
  const auto d = [](int64_t x) { return static_cast<double>(x); };
  return 4.0 * d(p.batch) * (d(p.lda) * d(p.columns_a()) + d(p.ldb) * d(p.columns_b()) + d(p.ldc) * d(p.n));
}

// With what is left free behind an operand, so that the next one begins where cudaMalloc would let it begin.
int64_t operand_floats(int64_t extent) {
  constexpr int64_t kStep = 256 / sizeof(float);
  return ceil_div(extent, kStep) * kStep;
}

int64_t set_bytes(const Problem& p) {
  return 4 * (operand_floats(p.extent_a()) + operand_floats(p.extent_b()) + operand_floats(p.extent_c()));
}

int sets_for(const Problem& p) {
  const int64_t bytes = std::max<int64_t>(1, set_bytes(p));
  return static_cast<int>(std::clamp<int64_t>((kRotationBytes + bytes - 1) / bytes, 2, kMostSets));
}

}  // namespace

int64_t bench_bytes(const Problem& problem) {
  if (stored_bytes(problem) > kMostBytes) return std::numeric_limits<int64_t>::max();
  return sets_for(problem) * set_bytes(problem) + ReferenceProduct::bytes(problem) + GuardedOutput::bytes(problem);
}

MeasurePlan plan_for(double expected_us, double budget_us, int least_rounds, int most_rounds) {
  MeasurePlan plan;
  plan.rounds = std::clamp(static_cast<int>(budget_us / std::max(1.0, expected_us)), least_rounds, most_rounds);
  plan.min_sample_us = budget_us / plan.rounds;
  return plan;
}

Result<std::unique_ptr<BenchContext>> BenchContext::create(Device& device, TimeModel time_model) {
  Result<std::unique_ptr<Verifier>> verifier = Verifier::create(device);
  if (!verifier) return Failure{verifier.error()};
  Result<LaunchScratch> scratch = LaunchScratch::create(device);
  if (!scratch) return Failure{scratch.error()};
  Baselines baselines = Baselines::open(device);
  return std::unique_ptr<BenchContext>(new BenchContext{device, std::move(*verifier), *scratch, std::move(baselines),
                                                        std::move(time_model), device.free_bytes() / 2});
}

Result<std::unique_ptr<ProblemBench>> ProblemBench::create(BenchContext& context, const Problem& problem) {
  if (const std::string why = why_refused(problem); !why.empty()) return Failure{why};
  if (problem.empty() || problem.k == 0) return Failure{to_string(problem) + " has nothing to multiply"};
  const int64_t bytes = bench_bytes(problem);
  if (bytes > context.memory_limit_bytes)
    return Failure{to_string(problem) + " needs " + std::to_string(bytes >> 20) +
                   " MiB of GPU memory to verify and time; the " + "limit is half of the free memory, " +
                   std::to_string(context.memory_limit_bytes >> 20) + " MiB"};
  std::unique_ptr<ProblemBench> bench(new ProblemBench(context, problem));
  const Result<bool> allocated = bench->allocate();
  if (!allocated) return Failure{to_string(problem) + ": " + allocated.error()};
  return bench;
}

// All sets in one piece: calibration has thousands of problems with up to 48 operands each. Kernels that read beyond an
// operand are for the tests to find, where each has memory of its own.
Result<bool> ProblemBench::allocate() {
  // The emulated device runs nothing when it is timed, so it reads one set only.
  const int sets = context_.device.info().emulated ? 1 : sets_for(problem_);
  Result<Buffer> allocated = context_.device.allocate(static_cast<size_t>(sets * set_bytes(problem_)));
  if (!allocated) return Failure{allocated.error()};
  operand_memory_ = *allocated;
  float* next = operand_memory_.as<float>();
  unsigned seed = 1;
  const auto operand = [&](int64_t floats) {
    float* begin = next;
    next += operand_floats(floats);
    context_.verifier->fill_random(begin, floats, seed++);
    return begin;
  };
  for (int set = 0; set < sets; ++set) {
    OperandSet& one = sets_.emplace_back();
    one.a = operand(problem_.extent_a());
    one.b = operand(problem_.extent_b());
    one.c = operand(problem_.extent_c());
  }
  return true;
}

Operands ProblemBench::operands(int rotation) const {
  const OperandSet& set = sets_[static_cast<size_t>(rotation) % sets_.size()];
  return {set.a, set.b, set.c, 1, 0};
}

Result<TilePlan> ProblemBench::prepare(const Choice& choice) {
  const std::string why = why_illegal(choice, problem_, context_.device.info(), kWorkspaceBytes);
  if (!why.empty()) return Failure{why};
  return build_plan(context_.device, choice, problem_, operands(0));
}

Result<bool> ProblemBench::make_reference() {
  if (has_reference_) return true;
  const Operands first = operands(0);
  Result<GuardedOutput> output = context_.verifier->output(problem_);
  if (!output) return Failure{output.error()};
  Result<ReferenceProduct> reference = context_.verifier->reference(problem_, first.a, first.b);
  if (!reference) return Failure{reference.error()};
  context_.device.synchronize(nullptr);
  output_ = *output;
  reference_ = *reference;
  has_reference_ = true;
  return true;
}

Verdict ProblemBench::verify(const TilePlan& plan) {
  make_reference().value_or_throw();
  const Operands first = operands(0);
  return context_.verifier->check(plan, problem_, first.a, first.b, reference_, output_, context_.scratch);
}

Workload ProblemBench::workload(const TilePlan& plan) const {
  Workload work = workload(to_string(plan.choice), [this, plan](const Operands& operands, Stream stream) {
    return launch_plan(context_.device, plan, problem_, operands, context_.scratch.workspace.as<float>(),
                       context_.scratch.tickets.as<unsigned>(), stream);
  });
  if (context_.time_model) work.modelled_us = context_.time_model(plan.choice, problem_);
  return work;
}

Workload ProblemBench::workload(const std::string& label,
                                std::function<Result<bool>(const Operands&, Stream)> enqueue) const {
  Workload work;
  work.label = label + " on " + to_string(problem_);
  work.enqueue = [this, enqueue = std::move(enqueue), text = work.label](Stream stream, int rotation) {
    const Result<bool> launched = enqueue(operands(rotation), stream);
    if (!launched) throw Error(text + ": " + launched.error());
  };
  return work;
}

std::vector<double> ProblemBench::measure(const TilePlan& plan, const MeasurePlan& how) {
  return context_.device.measure({workload(plan)}, how).front();
}

// Times each heuristic quickly, once per problem.
std::shared_ptr<CublasLt::Algorithm> ProblemBench::best_cublaslt(const MeasurePlan& how,
                                                                 const std::function<void()>& on_sample) {
  if (cublaslt_searched_ || context_.baselines.cublaslt == nullptr) return cublaslt_best_;
  cublaslt_searched_ = true;
  std::vector<std::shared_ptr<CublasLt::Algorithm>> usable;
  std::vector<Workload> workloads;
  for (const auto& algorithm : context_.baselines.cublaslt->heuristics(problem_, kMostHeuristics)) {
    if (!algorithm->enqueue(operands(0), nullptr)) continue;
    usable.push_back(algorithm);
    workloads.push_back(workload("cuBLASLt", [algorithm](const Operands& o, Stream s) { return algorithm->enqueue(o, s); }));
    workloads.back().on_sample = on_sample;
  }
  if (usable.empty()) return nullptr;
  context_.device.synchronize(nullptr);
  MeasurePlan quick = how;
  quick.rounds = 3;
  const std::vector<std::vector<double>> times = context_.device.measure(workloads, quick);
  size_t best = 0;
  for (size_t i = 1; i < times.size(); ++i)
    if (summarise(times[i]).median < summarise(times[best]).median) best = i;
  cublaslt_best_ = usable[best];
  return cublaslt_best_;
}

Comparison ProblemBench::compare(const std::vector<Workload>& own, const MeasurePlan& how, Against against,
                                 const std::function<void()>& on_baseline_sample) {
  std::vector<Workload> workloads = own;
  Cublas* cublas = context_.baselines.cublas.get();
  if (cublas != nullptr)
    workloads.push_back(workload("cuBLAS", [this, cublas](const Operands& o, Stream s) {
      return cublas->sgemm(problem_, o, s, context_.scratch.for_cublas());
    }));
  const std::shared_ptr<CublasLt::Algorithm> algorithm =
      against == Against::both ? best_cublaslt(how, on_baseline_sample) : nullptr;
  if (algorithm)
    workloads.push_back(workload("cuBLASLt", [algorithm](const Operands& o, Stream s) { return algorithm->enqueue(o, s); }));
  if (workloads.empty()) return {};
  for (size_t i = own.size(); i < workloads.size(); ++i) workloads[i].on_sample = on_baseline_sample;

  std::vector<std::vector<double>> times = context_.device.measure(workloads, how);
  Comparison comparison;
  if (algorithm) {
    comparison.cublaslt_best = std::move(times.back());
    comparison.cublaslt_algorithm = algorithm->name();
    times.pop_back();
  }
  if (cublas != nullptr) {
    comparison.cublas = std::move(times.back());
    times.pop_back();
  }
  comparison.own = std::move(times);
  return comparison;
}

}  // namespace gemm
