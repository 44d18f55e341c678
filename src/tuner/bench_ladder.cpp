#include "tuner/bench_ladder.h"

#include "kernels/ladder.h"
#include "tuner/formatted.h"
#include "tuner/statistics.h"

namespace gemm {
namespace {

class LadderBench {
 public:
  LadderBench(BenchContext& context, ProblemBench& bench) : context_(context), bench_(bench) {}

  void add(const std::string& name, const std::string& change, Workload workload) {
    lines_.push_back({name, change, 0, 0});
    workloads_.push_back(std::move(workload));
  }

  Result<bool> add_rung(const LadderRung& rung) {
    const Result<std::shared_ptr<Kernel>> kernel = context_.device.build(ladder_spec(rung));
    if (!kernel) return Failure{kernel.error()};
    add(rung.name, rung.change,
        bench_.workload(rung.name, [this, &rung, kernel = *kernel](const Operands& operands, Stream stream) {
          return launch_ladder(context_.device, *kernel, rung, bench_.problem(), operands, stream);
        }));
    return true;
  }

  std::vector<LadderTime> run(int rounds) {
    const Comparison comparison = bench_.compare(workloads_, bench_plan(rounds));
    for (size_t i = 0; i < lines_.size(); ++i) set_time(lines_[i], comparison.own[i]);
    add_baseline("cublas", "cublasSgemm", comparison.cublas);
    add_baseline("cublaslt", "best of cuBLASLt's heuristics: " + comparison.cublaslt_algorithm, comparison.cublaslt_best);
    return lines_;
  }

 private:
  void add_baseline(const char* name, const std::string& what, const std::vector<double>& samples_us) {
    if (samples_us.empty()) return;
    lines_.push_back({name, what, 0, 0});
    set_time(lines_.back(), samples_us);
  }

  void set_time(LadderTime& line, const std::vector<double>& samples_us) const {
    if (!plausible(samples_us)) throw Error("the times of " + line.name + " are not plausible");
    line.us = summarise(samples_us).median;
    line.gflops = bench_.problem().flops() / line.us / 1e3;
  }

  BenchContext& context_;
  ProblemBench& bench_;
  std::vector<LadderTime> lines_;
  std::vector<Workload> workloads_;
};

}  // namespace

Result<std::vector<LadderTime>> time_ladder(BenchContext& context, const Table* table, int64_t size, int rounds) {
  if (context.device.info().emulated)
    return Failure{"the ladder needs a GPU: the emulated device has no times for its kernels"};
  const Problem problem = packed_problem(size, size, size);
  if (const std::string why = why_not_on_ladder(problem); !why.empty()) return Failure{why};
  const Result<std::unique_ptr<ProblemBench>> bench = ProblemBench::create(context, problem);
  if (!bench) return Failure{bench.error()};
  LadderBench ladder(context, **bench);
  for (const LadderRung& rung : ladder_rungs()) {
    const Result<bool> added = ladder.add_rung(rung);
    if (!added) return Failure{added.error()};
  }
  const Result<Served> served = serve_as_dispatch(context, table, **bench);
  if (!served) return Failure{served.error()};
  if (served->plan)
    ladder.add("warp_tile", "warps between blocks and threads, copies in flight; " + to_string(served->candidate),
               workload_of(context, **bench, *served));
  return ladder.run(rounds);
}

std::string ladder_report(const std::vector<LadderTime>& times, int64_t size) {
  const auto edge = static_cast<long long>(size);
  std::string text = formatted("ladder on %lld x %lld x %lld\n%-12s %12s %10s %8s  %s\n", edge, edge, edge, "kernel",
                               "time_us", "GFLOP/s", "times", "change");
  for (const LadderTime& time : times)
    text += formatted("%-12s %12.1f %10.0f %8.1f  ", time.name.c_str(), time.us, time.gflops, times.front().us / time.us) +
            time.change + "\n";
  return text;
}

}  // namespace gemm
