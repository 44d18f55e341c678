// The analytic model of a kernel's time. The tuner ranks candidates by it before anything is compiled, where it only has to
// keep the good ones in; the selector, with corrections that were learned (learned_model.h), chooses by it for
// problems that nobody tuned. docs/tuning.md states it in words.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

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

  // What goes on at once never quite hides each other: the largest, and more where others are near. On the 6,775 trials of
  // the skinny prototype the best of the first five was 4.8 % behind the best of all, 5.6 % with the maximum.
  double us() const { return fixed + std::sqrt(compute * compute + memory * memory + latency * latency) + reduction; }
};

// What whole numbers are divided by, rounding up. A multiplication, since a choice divides some thousand times; the inverse
// is so little too small that only multiples of the divisor come out below what they should be, and one is added to all.
struct Divisor {
  explicit constexpr Divisor(double divisor) : inverse((1 - 0x1p-40) / divisor) {}
  // Of `n` from 1 on; exact up to 2^40.
  double parts(double n) const { return static_cast<double>(static_cast<int64_t>(n * inverse) + 1); }

  double inverse;
};

// Multiprocessors that take part, and the blocks that fit them at a time.
struct Places {
  Places(double its_sms, int resident) : sms(its_sms), blocks(its_sms * resident), by_sms(sms), by_blocks(blocks) {}

  double sms, blocks;
  Divisor by_sms, by_blocks;
};

// What the model needs of a configuration on a device, whatever the problem.
struct KernelCost {
  KernelCost(const KernelConfig& config, const DeviceInfo& device);

  KernelConfig config;
  int resident;  // blocks that fit a multiprocessor at a time
  double sm_count;
  double us_per_slot;  // of an issue slot: a clock
  double stage_bytes, tile_bytes;
  double least_fixed_us;          // launch, and what a block does before and after its stages
  double slices_us;               // of one block
  double latency_us;              // of one stage after the other
  double stages_ahead;            // that a block has under way
  double warps, computing_warps;  // of a block, for each scheduler; the latter without those that copy
  double chains;                  // of FMAs that do not wait for each other, in 64s for each scheduler, of a block
  Divisor by_BM, by_BN, by_BK;
  Places everywhere, in_clusters;  // a cluster lies within one GPC, where the last few multiprocessors hold no further one
  // Issue slots of a stage, by ops, vec_a and vec_b; of one warp, or with persistent blocks of a scheduler.
  std::array<double, 36> slots{};
  double aligned_slots[4] = {};               // the same where both operands are aligned, for the tensor copy engine
  double copy_slots_a = 0, copy_slots_b = 0;  // that a scheduler's copying warp needs for single floats, persistent blocks
  std::array<bool, 4> half_sectors{};         // by ops: stores fill half of each 32-byte sector at a time
};

// How many blocks share the k of each tile, and what that makes.
struct Split {
  int count;
  double stages, blocks;  // of one block; of the whole product
};

// A kernel's cost of one problem: what does not depend on the split of k is worked out once. Both must outlive it.
struct ProductCost {
  ProductCost(const KernelCost& kernel, const CostProblem& problem);

  Split split(int count) const { return split(count, Divisor(count)); }
  Split split(int count, const Divisor& by_count) const {
    return {count, count == 1 ? stages : by_count.parts(stages), tiles * count};
  }
  // With as many blocks as get at least one stage each (effective_split).
  Split effective_split(const Divisor& by_count) const {
    const double of_block = by_count.parts(stages), count = Divisor(of_block).parts(stages);
    return {static_cast<int>(count), of_block, tiles * count};
  }

  // The configuration must be able to serve the problem this way.
  CostTerms terms(const Split& split, Reduction reduction) const;
  // The part of them that adds up a split k by tickets or a second kernel.
  double reduction_us(const Split& split, Reduction reduction) const;

  const KernelCost& kernel;
  const CostProblem& problem;
  double tiles_m, tiles_n, tiles;  // of C; of all matrices of the batch
  double stages;                   // of all k
  bool tensor_copies = false;      // both operands come by the tensor copy engine
  double slots = 0;                // that a stage takes, as in KernelCost
  double traffic = 0;              // bytes of device memory
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
