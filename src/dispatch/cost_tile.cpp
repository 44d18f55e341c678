// How kernels of the tile family with one block for each tile and split load operands.
#include "dispatch/cost_tile.h"

namespace gemm::cost {
namespace {

constexpr double kConflictShareKFast = 1.18;  // where a fragment is loaded along k (static scores of cubins)
constexpr double kSlotsPerCopy = 3.0;         // cp.async with its address and predicate
constexpr double kSlotsPerStage = 45;         // barrier, loop, commit and wait
constexpr double kSlotsPerTmaStage = 15;      // a wait on the stage's barrier, and the loop
constexpr double kTmaSetupUs = 0.25;          // barriers, tensor maps: cp.async wins where a block has little to do

bool has_tensor_copies(const KernelVariant& v) { return v.config.load == LoadPath::tma; }

// Copy instructions that one thread issues per stage.
double copies_per_stage(const KernelVariant& v) {
  if (has_tensor_copies(v)) return 0;
  const auto copies = [&](const OperandLayout& layout, int vec) {
    const bool transposed = layout.k_contiguous && !layout.k_fast;
    const double floats = static_cast<double>(layout.rows) * v.config.BK / v.config.threads();
    if (v.config.load == LoadPath::register_staged) return floats / vec + floats / (transposed ? 1 : 4);
    return floats / (transposed ? 1 : vec);
  };
  return copies(layout_a(v), v.vec_a) + copies(layout_b(v), v.vec_b);
}

// Issue slots that one warp needs for one stage.
double slots_per_stage(const KernelVariant& v) {
  const KernelConfig& c = v.config;
  const bool k_fast = layout_a(v).k_fast || layout_b(v).k_fast;
  const double per_k = c.accumulators() * (k_fast ? kConflictShareKFast : kConflictShare) +
                       kSlotsPerFragmentRegister * (c.thread_rows() + c.thread_columns());
  const int depth = c.BK / c.slices;
  return depth * per_k + kSlotsPerCopy * copies_per_stage(v) + (has_tensor_copies(v) ? kSlotsPerTmaStage : kSlotsPerStage);
}

}  // namespace

void prepare_tile(KernelCost& kernel) {
  const KernelConfig& c = kernel.config;
  // What the tensor copy engine cannot copy takes `async`.
  KernelConfig copied = c;
  if (copied.load == LoadPath::tma) copied.load = LoadPath::async;
  for (int ops = 0; ops < 4; ++ops)
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b) {
        KernelVariant v = variant_with(copied, ops, a, b);
        if (copied.load == LoadPath::async_transpose && v.a_along_k()) v.vec_a = 1;
        if (copied.load == LoadPath::async_transpose && v.b_along_k()) v.vec_b = 1;
        LoadNumbers<double> loads{};
        loads.slots = slots_per_stage(v);
        loads.stored_again = stored_again(c, ops);
        kernel.loads[loads_index(ops, a, b, false)] = loads;
        if (c.load == LoadPath::tma) {
          loads.slots = slots_per_stage(variant_with(c, ops, 2, 2));
          loads.setup_us = kTmaSetupUs;
        }
        kernel.loads[loads_index(ops, a, b, true)] = loads;
      }
}

}  // namespace gemm::cost
