#include "tuner/bench.h"

#include <algorithm>
#include <cstdlib>

#include "dispatch/bundle.h"
#include "kernels/kernel_spec.h"
#include "tuner/candidates.h"
#include "tuner/statistics.h"

namespace gemm {
namespace {

// Long enough that the clock's resolution does not show, short enough for many samples.
constexpr double kSampleUs = 300;

std::optional<double> median(const std::vector<double>& samples_us) {
  if (!plausible(samples_us)) return std::nullopt;
  return summarise(samples_us).median;
}

}  // namespace

std::string BenchRow::kernel() const { return use_cublas ? "cublas" : config_id(choice.config); }

std::optional<double> BenchRow::best_us() const {
  if (!cublas_us) return cublaslt_best_us;
  return cublaslt_best_us ? std::min(*cublas_us, *cublaslt_best_us) : *cublas_us;
}

std::optional<double> BenchRow::speedup() const {
  const std::optional<double> best = best_us();
  if (!best || ours_us <= 0) return std::nullopt;
  return *best / ours_us;
}

MeasurePlan bench_plan(int rounds) { return {.rounds = rounds, .min_sample_us = kSampleUs, .use_graph = true, .warmup = 2}; }

Result<Served> serve_as_dispatch(BenchContext& context, const Table* table, ProblemBench& bench) {
  const Decision decision = choose(table, bench.problem(), context.device.info(), kWorkspaceBytes);
  std::string failures;
  for (const Candidate& candidate : decision.candidates) {
    if (candidate.use_cublas) {
      if (context.baselines.cublas) return Served{candidate, std::nullopt};
      failures += "; there is no cuBLAS";
      continue;
    }
    Result<TilePlan> plan = bench.prepare(candidate.choice);
    if (plan) return Served{candidate, std::move(*plan)};
    failures += "; " + plan.error();
  }
  return Failure{"nothing can serve " + to_string(bench.problem()) + failures};
}

Workload workload_of(const BenchContext& context, const ProblemBench& bench, const Served& served) {
  if (served.plan) return bench.workload(*served.plan);
  return bench.workload("cuBLAS by dispatch", [&](const Operands& operands, Stream stream) {
    return context.baselines.cublas->sgemm(bench.problem(), operands, stream, context.scratch.for_cublas());
  });
}

BenchRow Bench::run(const Shape& shape) {
  BenchRow row;
  row.shape = shape;
  row.floor_us = floor_us(peaks_, shape.problem);
  try {
    measure(row);
  } catch (const Error& error) {
    row.failure = error.what();
  }
  return row;
}

void Bench::measure(BenchRow& row) {
  const Result<std::unique_ptr<ProblemBench>> bench = ProblemBench::create(context_, row.shape.problem);
  if (!bench) {
    row.failure = bench.error();
    return;
  }
  const Result<Served> served = serve_as_dispatch(context_, table_, **bench);
  if (!served) {
    row.failure = served.error();
    return;
  }
  row.rule = served->candidate.rule;
  row.use_cublas = served->candidate.use_cublas;
  if (served->plan) {
    row.choice = served->plan->choice;
    const Verdict verdict = (*bench)->verify(*served->plan);
    row.max_scaled_error = verdict.max_scaled_error;
    if (!verdict.ok()) {
      row.failure = "wrong result of " + to_string(row.choice) + ": " + verdict.reason;
      row.wrong = true;
      return;
    }
  }
  time(row, **bench, *served);
}

void Bench::time(BenchRow& row, ProblemBench& bench, const Served& served) {
  const Workload ours = workload_of(context_, bench, served);
  const Comparison comparison = bench.compare({ours}, bench_plan(rounds_));
  row.cublas_us = median(comparison.cublas);
  row.cublaslt_best_us = median(comparison.cublaslt_best);
  const std::optional<double> ours_us = median(comparison.own.front());
  if (ours_us)
    row.ours_us = *ours_us;
  else
    row.failure = "the times of " + ours.label + " are not plausible";
}

Result<std::optional<FoundTable>> bench_table(const std::string& path, const std::vector<std::string>& folders,
                                              const DeviceInfo& device, std::vector<std::string>* warnings) {
  const char* from_environment = std::getenv("GEMM_TABLE");
  const std::string named = !path.empty() ? path : from_environment ? from_environment : "";
  if (named.empty()) return search_tables(folders, device, warnings);
  Result<LoadedTable> loaded = load_for_device(named, device, warnings);
  if (!loaded) return Failure{loaded.error()};
  return std::optional<FoundTable>(FoundTable{std::move(loaded->table), named, std::move(loaded->kernels)});
}

}  // namespace gemm
