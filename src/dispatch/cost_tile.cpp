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
double usable_sms(const DeviceInfo& device, const Choice& choice) {
  const bool leaves_gaps = choice.reduction == Reduction::cluster && choice.split_k >= kManyPerCluster;
  return device.sm_count * (leaves_gaps ? kClusteredShare : 1);
}

// Arithmetic: the busiest of so many multiprocessors works off its blocks; few warps leave issue slots unused.
double compute_us(const DeviceInfo& device, const KernelVariant& variant, const Geometry& g, int resident, double sms) {
  const KernelConfig& c = variant.config;
  const double rounds = ceil_div(g.blocks, sms);  // blocks that the busiest multiprocessor gets
  const double active = std::min<double>(resident, rounds);
  // Independent FMAs of one thread hide latency as other warps do.
  const double warps_per_scheduler = active * c.threads() / kLanesPerSm;
  const double utilisation = 1 - 0.3 / std::max(1.0, warps_per_scheduler * c.accumulators() / 64.0);
  const double slots = g.stages * slots_per_stage(variant) * std::max(1.0, rounds * c.threads() / kLanesPerSm);
  return slots / utilisation / clock_mhz(device);
}

}  // namespace

double tile_us(const DeviceInfo& device, const Choice& choice, const Problem& problem, int resident) {
  const KernelConfig& c = choice.config;
  const Geometry g = geometry_of(choice, problem);
  const KernelVariant variant = variant_for(c, problem, {});
  const double sms = usable_sms(device, choice);
  const double slots = resident * sms;
  const double waves = ceil_div(g.blocks, slots);
  const double body = overlapped(compute_us(device, variant, g, resident, sms),
                                 memory_us(device, variant.config, problem, g, std::min(g.blocks, slots), g.stages),
                                 latency_us(c, waves * g.stages));
  const double setup = kLaunchUs + kPrologueUs + (has_tensor_copies(variant) ? kTmaSetupUs : 0);
  return setup + kWaveUs * (waves - 1) + slices_us(device, c, g) + body + split_us(device, choice, g) + g.blocks * kCtaUs;
}

}  // namespace gemm::cost
