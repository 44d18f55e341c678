// How persistent blocks load operands.
#include "dispatch/cost_specialized.h"

namespace gemm::cost {
namespace {

constexpr double kSlotsPerStage = 20;  // loop, wait, and the arrival that frees the stage
constexpr double kLinesPerCopy = 4;    // lines of memory that 32 transposing 4-byte copies touch

// Cycles that an SM's memory pipe needs for the 4-byte copies of a stage.
double copy_passes(const KernelVariant& v) {
  const KernelConfig& c = v.config;
  const auto passes = [&](int vec, bool along_k, int rows) {
    return vec == 4 ? 0.0 : rows * c.BK / 32.0 * (along_k ? kLinesPerCopy : 1);
  };
  return passes(v.vec_a, v.a_along_k(), c.BM) + passes(v.vec_b, v.b_along_k(), c.BN);
}

// With operands that stay along k: static scores of cubins find 569 conflicts for 2,048 FMAs of 8 x 16 results, and 24 for
// 1,024 of 8 x 8, where ptxas has registers to move accumulators.
double conflict_share_along_k(const KernelConfig& c) { return c.accumulators() > 64 ? 1.28 : 1.05; }

// Issue slots of a scheduler's computing warps for one stage of one block.
double compute_slots(const KernelConfig& c, double conflict_share) {
  const double per_k =
      c.accumulators() * conflict_share + kSlotsPerFragmentRegister * (c.thread_rows() + c.thread_columns());
  const int depth = c.BK / c.slices;
  return c.compute_threads() / kLanesPerSm * (depth * per_k + kSlotsPerStage);
}

// What is aligned comes as boxes, except where it has to be transposed. `vec` is the number of a load width.
bool is_copied_singly(const KernelConfig& c, bool along_k, int vec) { return vec < 2 || (along_k && !stays_along_k(c, 4)); }

}  // namespace

void prepare_specialized(KernelCost& kernel) {
  const KernelConfig& c = kernel.config;
  const double rows_slots = compute_slots(c, kConflictShare), along_k_slots = compute_slots(c, conflict_share_along_k(c));
  for (int ops = 0; ops < 4; ++ops)
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b) {
        KernelVariant v = variant_with(c, ops, a, b);
        const bool a_singly = is_copied_singly(c, v.a_along_k(), a), b_singly = is_copied_singly(c, v.b_along_k(), b);
        v.vec_a = a_singly ? 1 : 4;
        v.vec_b = b_singly ? 1 : 4;
        LoadNumbers<double> loads{};
        loads.slots = (v.a_along_k() && !a_singly) || (v.b_along_k() && !b_singly) ? along_k_slots : rows_slots;
        loads.copy_slots_a = a_singly ? c.BM * c.BK / kLanesPerSm : 0;
        loads.copy_slots_b = b_singly ? c.BN * c.BK / kLanesPerSm : 0;
        loads.pipe_slots = copy_passes(v);
        loads.stored_again = stored_again(c, ops);
        for (const bool aligned : {false, true}) kernel.loads[loads_index(ops, a, b, aligned)] = loads;
      }
}

}  // namespace gemm::cost
