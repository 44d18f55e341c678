// The tile family with one block for each tile and split: cp.async, register staging, and the tensor copy engine.
#include "dispatch/cost_families.h"

namespace gemm::cost {
namespace {

constexpr double kConflictShareKFast = 1.18;  // where a fragment is loaded along k (static scores of cubins)
constexpr double kSlotsPerCopy = 3.0;         // cp.async with its address and predicate
constexpr double kSlotsPerStage = 45;         // barrier, loop, commit and wait
constexpr double kSlotsPerTmaStage = 15;      // a wait on the stage's barrier, and the loop
constexpr double kTmaSetupUs = 0.25;          // barriers, tensor maps: cp.async wins where a block has little to do
constexpr double kUnusedShare = 0.3;          // of the issue slots, with one warp of 64 results a thread for each scheduler
constexpr double kWaveUs = 0.5;               // of each further wave: its first stage and its stores, partly hidden
constexpr int kManyPerCluster = 3;            // blocks. From here on clusters leave gaps in their GPC

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

const Places& places_of(const KernelCost& kernel, const Split& split, Reduction reduction) {
  const bool leaves_gaps = reduction == Reduction::cluster && split.count >= kManyPerCluster;
  return leaves_gaps ? kernel.in_clusters : kernel.everywhere;
}

// Arithmetic: the busiest multiprocessor works off its blocks; few warps leave issue slots unused.
double compute_us(const ProductCost& cost, const Split& split, const Places& places) {
  const KernelCost& kernel = cost.kernel;
  const double rounds = places.by_sms.parts(split.blocks);  // blocks that the busiest multiprocessor gets
  // Independent FMAs of one thread hide latency as other warps do.
  const double chains = std::max(1.0, std::min<double>(kernel.resident, rounds) * kernel.chains);
  const double slots = split.stages * cost.slots * std::max(1.0, rounds * kernel.warps);
  return slots * kernel.us_per_slot * chains / (chains - kUnusedShare);
}

}  // namespace

void prepare_tile(KernelCost& kernel) {
  // What the tensor copy engine cannot copy takes `async`.
  KernelConfig copied = kernel.config;
  if (copied.load == LoadPath::tma) copied.load = LoadPath::async;
  for (int ops = 0; ops < 4; ++ops)
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b) {
        KernelVariant v = variant_with(copied, ops, a, b);
        if (copied.load == LoadPath::async_transpose && v.a_along_k()) v.vec_a = 1;
        if (copied.load == LoadPath::async_transpose && v.b_along_k()) v.vec_b = 1;
        kernel.slots[slots_index(ops, a, b)] = slots_per_stage(v);
      }
  if (kernel.config.load == LoadPath::tma)
    for (int ops = 0; ops < 4; ++ops) kernel.aligned_slots[ops] = slots_per_stage(variant_with(kernel.config, ops, 2, 2));
}

double slots_of_tile(const ProductCost& cost) {
  const CostProblem& p = cost.problem;
  return cost.tensor_copies ? cost.kernel.aligned_slots[p.ops] : cost.kernel.slots[slots_index(p.ops, p.cut_a, p.cut_b)];
}

CostTerms tile_terms(const ProductCost& cost, const Split& split, Reduction reduction) {
  const KernelCost& kernel = cost.kernel;
  const Places& places = places_of(kernel, split, reduction);
  const double waves = places.by_blocks.parts(split.blocks);
  CostTerms terms;
  terms.fixed = kLaunchUs + kPrologueUs + (cost.tensor_copies ? kTmaSetupUs : 0) + kWaveUs * (waves - 1) +
                slices_us(kernel, split) + split.blocks * kCtaUs;
  terms.compute = compute_us(cost, split, places);
  terms.memory = memory_us(cost, split, std::min(split.blocks, places.blocks), split.stages);
  terms.latency = waves * split.stages * kernel.latency_us;
  terms.reduction = split_us(cost, split, reduction);
  return terms;
}

}  // namespace gemm::cost
