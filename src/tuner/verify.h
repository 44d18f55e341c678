// Verification on the device: a candidate may be timed only after its results were right, with C poisoned, guard words and
// leading-dimension gaps intact, on the problem itself and on edge shapes of its tile.
//
// A result is right when |c - expected| <= bound for every element (NaN is not), with the expectation in FP64 and
//
//   bound = eps * ((4 + 2 * sqrt(k)) * |alpha| * (|op(A)| |op(B)|) + 4 * |beta * c_before|),   eps = 2^-24
//
// Rounding errors of k additions grow like sqrt(k): any order of FP32 additions of random data passes with a wide margin,
// while one forgotten term of k fails on the edge shapes, where k is small.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "dispatch/cublas.h"
#include "kernels/device.h"
#include "kernels/launch.h"

namespace gemm {

struct Verdict {
  std::string reason;  // why the kernel is wrong; empty where it is right
  bool launch_refused = false;
  double max_scaled_error = 0;  // worst |error| / bound

  bool ok() const { return reason.empty(); }
};

// What every launch needs beside its operands.
struct LaunchScratch {
  Buffer workspace;  // kWorkspaceBytes
  Buffer tickets;    // kMaxTickets words, zero between launches

  static Result<LaunchScratch> create(Device& device);
  // The same memory for cuBLAS: one stream, so one call at a time uses it.
  Cublas::Workspace for_cublas() const { return {workspace.as(), workspace.bytes()}; }
};

// FP64 results of a product without alpha and beta, packed.
struct ReferenceProduct {
  Buffer sum, magnitude;  // doubles

  static int64_t bytes(const Problem& problem);
};

// An output matrix with guard words before and behind it.
struct GuardedOutput {
  Buffer allocation;
  int64_t front_words = 0;
  int64_t words = 0;  // used part of the allocation

  float* c() const { return allocation.as<float>() + front_words; }
  static int64_t bytes(const Problem& problem);
};

class Verifier {
 public:
  static Result<std::unique_ptr<Verifier>> create(Device& device);

  void fill_random(float* data, int64_t count, unsigned seed);

  // Failure: not enough memory.
  Result<ReferenceProduct> reference(const Problem& problem, const float* a, const float* b);
  Result<GuardedOutput> output(const Problem& problem);

  // The problem itself, with alpha 1 and beta 0 over poison. Throws Error when the device fails.
  Verdict check(const TilePlan& plan, const Problem& problem, const float* a, const float* b,
                const ReferenceProduct& reference, const GuardedOutput& output, const LaunchScratch& scratch);

  // Edge shapes with the plan's own kernel; done once per kernel, then remembered. Throws Error when the device fails.
  Verdict check_edges(const TilePlan& plan, const LaunchScratch& scratch);

  // Number of edge shapes checked so far.
  int edge_runs() const { return edge_runs_; }

 private:
  struct EdgeCase;
  explicit Verifier(Device& device) : device_(device) {}
  static std::vector<EdgeCase> edge_cases(const KernelVariant& variant);
  Verdict check_edge(const TilePlan& plan, const EdgeCase& edge, const LaunchScratch& scratch);
  float* edge_operand(Buffer& buffer, int64_t rows, int64_t columns, int64_t ld, int64_t stride, int64_t batch, int vec,
                      unsigned seed);
  void run_reference(const Problem& problem, const float* a, const float* b, const ReferenceProduct& reference);
  Verdict run_and_compare(const TilePlan& plan, const Problem& problem, const Operands& operands, const float* c_before,
                          const ReferenceProduct& reference, const GuardedOutput& output, const LaunchScratch& scratch);
  void count_violations(const unsigned* words, int64_t total, int64_t front, const Problem& problem, unsigned sentinel);
  void launch_check(const Kernel& kernel, Grid grid, int shared_bytes, const void* args, size_t args_bytes);

  Device& device_;
  std::shared_ptr<Kernel> fill_, reference_, compare_, guard_;
  Buffer results_;  // {bits of the worst scaled error, guard violations}
  Buffer edge_a_, edge_b_, edge_c_before_;
  GuardedOutput edge_c_;
  ReferenceProduct edge_reference_;
  std::set<std::string> edges_checked_;  // kernels, by name
  int edge_runs_ = 0;
};

}  // namespace gemm
