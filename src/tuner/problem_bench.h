// One problem on one device, ready to be measured: rotating operands, scratch, verification, own kernels and baselines.
// gemm-tune and gemm-bench both measure with this class.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tuner/baselines.h"
#include "tuner/verify.h"

namespace gemm {

// Operand sets rotate until they cover this many bytes (but at most kMostSets of them), so that no launch finds its operands
// in L1 or, for short kernels, all of them in L2.
inline constexpr int64_t kRotationBytes = 64 << 20;
inline constexpr int kMostSets = 16;

// Time of a choice on the emulated device; not used on a real one.
using TimeModel = std::function<double(const Choice&, const Problem&)>;

// What lives as long as the device does and serves one problem after the other.
struct BenchContext {
  Device& device;
  std::unique_ptr<Verifier> verifier;
  LaunchScratch scratch;
  Baselines baselines;
  TimeModel time_model;
  int64_t memory_limit_bytes = 0;  // for one problem: half of what was free at the start

  static Result<std::unique_ptr<BenchContext>> create(Device& device, TimeModel time_model);
};

// Samples of a comparison in which everything was interleaved, in microseconds.
struct Comparison {
  std::vector<std::vector<double>> own;  // one list per own workload
  std::vector<double> cublas;            // empty where there is no cuBLAS
  std::vector<double> cublaslt_best;     // empty where there is no cuBLASLt
  std::string cublaslt_algorithm;
};

// Baselines of a comparison. Searching cuBLASLt's heuristics takes longer than timing some tens of kernels quickly.
enum class Against { cublas, both };

class ProblemBench {
 public:
  // Allocates and fills the operands. Failure: the problem does not fit the memory limit.
  static Result<std::unique_ptr<ProblemBench>> create(BenchContext& context, const Problem& problem);

  const Problem& problem() const { return problem_; }
  // Operands with alpha 1 and beta 0; `rotation` is taken modulo the number of sets.
  Operands operands(int rotation) const;

  Result<TilePlan> prepare(const Choice& choice);

  // Computes the FP64 reference of the problem, if that has not happened yet.
  Result<bool> make_reference();

  // Compares with the reference. Throws Error when the device fails.
  Verdict verify(const TilePlan& plan);

  // One own kernel, or any way of computing the product into operands.c. Valid as long as this object.
  Workload workload(const TilePlan& plan) const;
  Workload workload(const std::string& label, std::function<Result<bool>(const Operands&, Stream)> enqueue) const;

  std::vector<double> measure(const TilePlan& plan, const MeasurePlan& how);

  // `own` and the baselines, interleaved round by round. `on_baseline_sample` is the baselines' Workload::on_sample.
  Comparison compare(const std::vector<Workload>& own, const MeasurePlan& how, Against against = Against::both,
                     const std::function<void()>& on_baseline_sample = {});

 private:
  struct OperandSet {
    float *a, *b, *c;
  };
  ProblemBench(BenchContext& context, const Problem& problem) : context_(context), problem_(problem) {}
  Result<bool> allocate();
  std::shared_ptr<CublasLt::Algorithm> best_cublaslt(const MeasurePlan& how, const std::function<void()>& on_sample);

  BenchContext& context_;
  Problem problem_;
  Buffer operand_memory_;  // of all sets
  std::vector<OperandSet> sets_;
  ReferenceProduct reference_;
  GuardedOutput output_;
  bool has_reference_ = false;
  bool cublaslt_searched_ = false;
  std::shared_ptr<CublasLt::Algorithm> cublaslt_best_;
};

// Bytes of device memory that measuring the problem takes.
int64_t bench_bytes(const Problem& problem);

// Rounds and sample lengths: about `budget_us` for one workload of `expected_us`, with at least `least_rounds` samples.
MeasurePlan plan_for(double expected_us, double budget_us, int least_rounds, int most_rounds);

}  // namespace gemm
