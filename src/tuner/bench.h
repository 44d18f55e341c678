// gemm-bench: what dispatch would choose for each shape, verified and timed against cuBLAS and cuBLASLt.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dispatch/selector.h"
#include "dispatch/table_search.h"
#include "tuner/bench_peaks.h"
#include "tuner/problem_bench.h"
#include "tuner/shapes.h"

namespace gemm {

// One shape. Times are medians in microseconds; baselines are absent on the emulated device.
struct BenchRow {
  Shape shape;
  std::string failure;  // why there are no times; empty where there are
  bool wrong = false;   // the failure is a wrong result
  Rule rule = Rule::cublas;
  bool use_cublas = false;
  Choice choice;  // where not use_cublas, with the split that is left for this k
  double ours_us = 0;
  std::optional<double> cublas_us, cublaslt_best_us;
  double floor_us = 0;
  std::optional<double> max_scaled_error;  // of an own kernel, at most 1

  std::string kernel() const;             // "cublas" or the kernel's id
  std::optional<double> best_us() const;  // the faster baseline
  std::optional<double> speedup() const;  // best_us / ours_us
};

// What dispatch would serve a problem with, ready to launch.
struct Served {
  Candidate candidate;
  std::optional<TilePlan> plan;  // unless cuBLAS
};

// The first candidate that can be built, as a Context takes it. `table` may be null.
Result<Served> serve_as_dispatch(BenchContext& context, const Table* table, ProblemBench& bench);

// To be timed; valid as long as the context and `bench`.
Workload workload_of(const BenchContext& context, const ProblemBench& bench, const Served& served);

class Bench {
 public:
  // `table` may be null. `rounds` samples are taken of everything that is timed.
  Bench(BenchContext& context, const Table* table, const Peaks& peaks, int rounds)
      : context_(context), table_(table), peaks_(peaks), rounds_(rounds) {}

  // An Error is the failure of this row alone: the next shape may do.
  BenchRow run(const Shape& shape);

 private:
  void measure(BenchRow& row);
  void time(BenchRow& row, ProblemBench& bench, const Served& served);

  BenchContext& context_;
  const Table* table_;
  Peaks peaks_;
  int rounds_;
};

// How every sample of the benchmark is taken.
MeasurePlan bench_plan(int rounds);

// The table at `path`, or where that is empty the one that the device's user would get: GEMM_TABLE, else `folders`. Nothing
// where there is none. Failure: it cannot be read, or is of a newer kind of GPU.
Result<std::optional<FoundTable>> bench_table(const std::string& path, const std::vector<std::string>& folders,
                                              const DeviceInfo& device, std::vector<std::string>* warnings);

}  // namespace gemm
