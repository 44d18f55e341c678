// The analytic model of a kernel's time. The tuner ranks candidates by it before anything is compiled, where it only has to
// keep the good ones in; the selector, with corrections that were learned (learned_model.h), chooses by it for
// problems that nobody tuned. docs/tuning.md states it in words.
#pragma once

#include <array>

#include "kernels/device.h"
#include "kernels/launch.h"

namespace gemm {

// What the model looks at in a problem, worked out once for all kernels. Leading dimensions and strides count, pointers are
// taken as aligned.
struct CostProblem {
  explicit CostProblem(const Problem& problem);

  Problem problem;
  double m, n, k, batch;
  double bytes, output_bytes;
  int ops;           // 2 for a transposed A, plus 1 for a transposed B
  int vec_a, vec_b;  // 0, 1 or 2: single floats, pairs or quads, as leading dimensions and strides allow
  int cut_a, cut_b;  // the same for loads that the last row must not cut
};

// Parts of a predicted time in microseconds. Arithmetic, memory and latency go on at once.
struct CostTerms {
  double fixed = 0;      // launch, first and last stage, waves
  double compute = 0;    // of the busiest multiprocessor
  double memory = 0;     // device memory or L2
  double latency = 0;    // stages that follow each other
  double reduction = 0;  // of a split k

  double us() const;
};

// What the model needs of a configuration on a device, whatever the problem.
struct KernelCost {
  KernelCost(const KernelConfig& config, const DeviceInfo& device);

  // The configuration must be able to serve the problem this way.
  CostTerms terms(const CostProblem& problem, int split_k, Reduction reduction) const;
  // The part of them that adds up a split k by tickets or a second kernel.
  double reduction_us(const CostProblem& problem, int split_k, Reduction reduction) const;
  // At most the terms of any split and reduction.
  CostTerms least(const CostProblem& problem) const;

  KernelConfig config;
  int resident;  // blocks that fit a multiprocessor at a time
  double sm_count;
  double us_per_slot;  // of an issue slot: a clock
  double stage_bytes, tile_bytes;
  double least_fixed_us;  // launch, and what a block does before and after its stages
  double slices_us;       // of one block
  // Issue slots of a stage, by ops, vec_a and vec_b; of one warp, or with persistent blocks of a scheduler.
  std::array<double, 36> slots{};
  double aligned_slots[4] = {};               // the same where both operands are aligned, for the tensor copy engine
  double copy_slots_a = 0, copy_slots_b = 0;  // that a scheduler's copying warp needs for single floats, persistent blocks
  std::array<bool, 4> half_sectors{};         // by ops: stores fill half of each 32-byte sector at a time
};

// Predicted time of one execution in microseconds.
double predicted_us(const DeviceInfo& device, const Choice& choice, const Problem& problem);

// Time of copying the operands, all panels together.
double relayout_us(const DeviceInfo& device, Relayout relayout, const Problem& problem);

// A lower bound of any kernel's time: arithmetic peak, device memory, launch.
double floor_us(const DeviceInfo& device, const Problem& problem);

// Blocks of this configuration that fit one multiprocessor at a time.
int blocks_per_sm(const KernelConfig& config, const DeviceLimits& limits);

}  // namespace gemm
