// The tile family with one block for each tile and split: cp.async, register staging, and the tensor copy engine.
#include "dispatch/cost_families.h"

namespace gemm::cost {
namespace {

constexpr double kConflictShareKFast = 1.18;  // where a fragment is loaded along k (static scores of cubins)
constexpr double kSlotsPerCopy = 3.0;         // cp.async with its address and predicate
constexpr double kSlotsPerStage = 45;         // barrier, loop, commit and wait
constexpr double kSlotsPerTmaStage = 15;      // a wait on the stage's barrier, and the loop
constexpr double kTmaSetupUs = 0.25;          // barriers, tensor maps: cp.async wins where a block has little to do
constexpr double kWaveUs = 0.5;               // of each further wave: its first stage and its stores, partly hidden
constexpr int kManyPerCluster = 3;            // blocks. From here on clusters leave gaps in their GPC and
constexpr double kClusteredShare = 0.85;      // take this share of the multiprocessors (112 of 132 on an H200)

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

// Multiprocessors that take part. A cluster lies within one GPC, where the last few multiprocessors hold no further one.
double usable_sms(const KernelCost& kernel, int split_k, Reduction reduction) {
  const bool leaves_gaps = reduction == Reduction::cluster && split_k >= kManyPerCluster;
  return kernel.sm_count * (leaves_gaps ? kClusteredShare : 1);
}

// Arithmetic: the busiest of so many multiprocessors works off its blocks; few warps leave issue slots unused.
double compute_us(const KernelCost& kernel, double slots_per_stage, const Geometry& g, double sms) {
  const KernelConfig& c = kernel.config;
  const double rounds = ceil_div(g.blocks, sms);  // blocks that the busiest multiprocessor gets
  const double active = std::min<double>(kernel.resident, rounds);
  // Independent FMAs of one thread hide latency as other warps do.
  const double warps_per_scheduler = active * c.threads() * (1 / kLanesPerSm);
  const double utilisation = 1 - 0.3 / std::max(1.0, warps_per_scheduler * c.accumulators() * (1 / 64.0));
  const double slots = g.stages * slots_per_stage * std::max(1.0, rounds * c.threads() * (1 / kLanesPerSm));
  return slots / utilisation * kernel.us_per_slot;
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

CostTerms tile_terms(const KernelCost& kernel, const CostProblem& p, int split_k, Reduction reduction) {
  const KernelConfig& c = kernel.config;
  const Geometry g = geometry_of(c, p, split_k);
  const bool tensor_copies = c.load == LoadPath::tma && p.vec_a == 2 && p.vec_b == 2;
  const double slots = tensor_copies ? kernel.aligned_slots[p.ops] : kernel.slots[slots_index(p.ops, p.cut_a, p.cut_b)];
  const double sms = usable_sms(kernel, split_k, reduction);
  const double places = kernel.resident * sms;
  const double waves = ceil_div(g.blocks, places);
  CostTerms terms;
  terms.fixed = kLaunchUs + kPrologueUs + (tensor_copies ? kTmaSetupUs : 0) + kWaveUs * (waves - 1) + slices_us(kernel, g) +
                g.blocks * kCtaUs;
  terms.compute = compute_us(kernel, slots, g, sms);
  terms.memory = memory_us(kernel, p, g, std::min(g.blocks, places), g.stages);
  terms.latency = latency_us(c, waves * g.stages);
  terms.reduction = split_us(kernel, g, split_k, reduction);
  return terms;
}

}  // namespace gemm::cost
