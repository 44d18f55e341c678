// What the formulas of the cost model (cost_formulas.h) work on. N is a double, for one kernel, or Lanes, for eight at a
// time.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace gemm::cost {

// As for Lanes (lanes.h).
inline double least(double a, double b) { return a < b ? a : b; }
inline double most(double a, double b) { return a > b ? a : b; }
inline double where(bool condition, double yes, double no) { return condition ? yes : no; }
inline double root(double x) { return std::sqrt(x); }
inline double whole(double x) { return static_cast<double>(static_cast<int64_t>(x)); }

// Parts of a predicted time in microseconds. Arithmetic, memory and latency go on at once.
template <class N>
struct Terms {
  N fixed = 0;      // launch, first and last stage, waves
  N compute = 0;    // of the busiest multiprocessor
  N memory = 0;     // device memory or L2
  N latency = 0;    // stages that follow each other
  N reduction = 0;  // of a split k

  // What goes on at once never quite hides each other: the largest, and more where others are near. On the 6,775 trials of
  // the skinny prototype the best of the first five was 4.8 % behind the best of all, 5.6 % with the maximum.
  N us() const { return fixed + root(compute * compute + memory * memory + latency * latency) + reduction; }
};

// What whole numbers are divided by, rounding up. A multiplication, since a choice divides some thousand times: by half less
// than the number, so that its rounding cannot reach the next whole one. Exact for quotients of numbers up to 2^50, of
// floats up to 2^20; beyond, one more or less does not matter.
template <class N>
struct DivisorOf {
  DivisorOf() = default;
  explicit DivisorOf(const N& divisor) : inverse(1.0 / divisor) {}
  N parts(const N& n) const { return whole((n - 0.5) * inverse) + 1.0; }  // of `n` from 1 on
  N whole_parts(const N& n) const { return whole((n + 0.5) * inverse); }  // rounding down

  N inverse;
};
template <class Condition, class N>
DivisorOf<N> where(const Condition& condition, const DivisorOf<N>& yes, const DivisorOf<N>& no) {
  DivisorOf<N> chosen;
  chosen.inverse = where(condition, yes.inverse, no.inverse);
  return chosen;
}

// What the model needs of a kernel on a device, whatever the problem. Nothing but numbers N, so that those of eight kernels
// are easily put side by side.
template <class N>
struct KernelNumbers {
  N BM, BN, BK;
  DivisorOf<N> by_BM, by_BN, by_BK;
  N resident;          // blocks that fit a multiprocessor at a time
  N blocks;            // that fit all of them
  N clustered_blocks;  // the same, in clusters of three and more
  DivisorOf<N> by_blocks, by_clustered_blocks;
  N sm_count;
  DivisorOf<N> by_sms, by_clustered_sms;
  N us_per_slot;  // of an issue slot: a clock
  N stage_bytes, tile_bytes;
  N slices_us;               // of one block
  N latency_us;              // of one stage after the other
  N stages_ahead;            // that a block has under way
  N warps, computing_warps;  // of a block, for each scheduler; the latter without those that copy
  N chains;                  // of FMAs that do not wait for each other, in 64s for each scheduler, of a block
  N stream_bytes;            // that a block of the stream family has under way
  DivisorOf<N> by_matrices;  // of a block of the batch family
};

// What it needs of how a kernel loads the operands of a product, and stores.
template <class N>
struct LoadNumbers {
  N slots;                       // issue slots of a stage; of one warp, or with persistent blocks of a scheduler
  N copy_slots_a, copy_slots_b;  // that a scheduler's copying warp needs for single floats, persistent blocks
  N pipe_slots;                  // of the memory pipe, for these
  N setup_us;                    // of the tensor copy engine
  N stored_again;                // share of C: half-filled sectors
};

// How many blocks share the k of each tile, and what that makes.
template <class N>
struct Split {
  N count;
  N stages, blocks;  // of one block; of the whole product
};

}  // namespace gemm::cost
