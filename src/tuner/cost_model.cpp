#include "tuner/cost_model.h"

#include <algorithm>
#include <cmath>

namespace gemm {
namespace {

// Constants measured on an H200 (docs/performance.md); bandwidths are per multiprocessor, so that they scale with the GPU.
constexpr double kDramBytesPerUsPerSm = 32'600;    // 4.3 TB/s over 132
constexpr double kL2BytesPerUsPerSm = 60'000;      // about 30 bytes a cycle
constexpr double kMemoryLatencyUs = 0.85;          // under load
constexpr double kLaunchUs = 1.8;                  // shortest kernel seen that does something
constexpr double kPrologueUs = 0.9;                // first stage arrives, accumulators leave
constexpr double kCtaUs = 0.0006;                  // of the whole device, per block
constexpr double kWaveUs = 0.5;                    // of each further wave: its first stage and its stores, partly hidden
constexpr double kSharedBytesPerClock = 128;       // of an SM
constexpr double kConflictShare = 1.04;            // issue slots of an FMA with register-bank conflicts, operands rows fast
constexpr double kConflictShareKFast = 1.18;       // and where a fragment is loaded along k (static scores of cubins)
constexpr double kHalfSectorShare = 2.0;           // stores of 8 adjacent rows fill half of each 32-byte sector at a time
constexpr double kSecondKernelUs = 1.0;            // in a graph
constexpr double kTicketUs = 1.2;                  // fence, atomic, first read back
constexpr double kSlotsPerFragmentRegister = 0.7;  // an LDS.128 costs 2.9 to 3.4 issue slots
constexpr double kSlotsPerCopy = 3.0;              // cp.async with its address and predicate
constexpr double kSlotsPerStage = 45;              // barrier, loop, commit and wait

double ceil_div(double a, double b) { return std::ceil(a / b); }

// Copy instructions that one thread issues per stage.
double copies_per_stage(const KernelVariant& v) {
  const auto copies = [&](const OperandLayout& layout, int vec) {
    const bool transposed = layout.k_contiguous && !layout.k_fast;
    const double floats = static_cast<double>(layout.rows) * v.config.BK / v.config.threads();
    if (v.config.load == LoadPath::register_staged) return floats / vec + floats / (transposed ? 1 : 4);
    return floats / (transposed ? 1 : vec);
  };
  return copies(v.layout_a(), v.vec_a) + copies(v.layout_b(), v.vec_b);
}

// Issue slots that one warp needs for one stage.
double slots_per_stage(const KernelVariant& v) {
  const KernelConfig& c = v.config;
  const bool k_fast = v.layout_a().k_fast || v.layout_b().k_fast;
  const double per_k = c.accumulators() * (k_fast ? kConflictShareKFast : kConflictShare) +
                       kSlotsPerFragmentRegister * (c.thread_rows() + c.thread_columns());
  const int depth = c.BK / c.slices;
  return depth * per_k + kSlotsPerCopy * copies_per_stage(v) + kSlotsPerStage;
}

struct Geometry {
  double tiles, blocks, k_per_split, stages;
};

Geometry geometry_of(const Choice& choice, const Problem& p) {
  const KernelConfig& c = choice.config;
  Geometry g{};
  g.tiles =
      ceil_div(static_cast<double>(p.m), c.BM) * ceil_div(static_cast<double>(p.n), c.BN) * static_cast<double>(p.batch);
  g.blocks = g.tiles * choice.split_k;
  g.stages = std::max(1.0, ceil_div(ceil_div(static_cast<double>(p.k), choice.split_k), c.BK));
  g.k_per_split = g.stages * c.BK;
  return g;
}

// Arithmetic: the busiest multiprocessor works off its blocks; few warps leave issue slots unused.
double compute_us(const DeviceInfo& device, const KernelVariant& variant, const Geometry& g, int resident) {
  const KernelConfig& c = variant.config;
  const double rounds = ceil_div(g.blocks, device.sm_count);  // blocks that the busiest multiprocessor gets
  const double active = std::min<double>(resident, rounds);
  // 4 schedulers of 32 lanes; independent FMAs of one thread hide latency as other warps do.
  const double warps_per_scheduler = active * c.threads() / 128.0;
  const double utilisation = 1 - 0.3 / std::max(1.0, warps_per_scheduler * c.accumulators() / 64.0);
  const double slots = g.stages * slots_per_stage(variant) * std::max(1.0, rounds * c.threads() / 128.0);
  return slots / utilisation / std::max(1, device.sm_clock_mhz);
}

// Device memory, as far as the copies in flight can use it (Little's law), and L2.
double memory_us(const DeviceInfo& device, const KernelConfig& c, const Problem& p, const Geometry& g, int resident) {
  const double active_blocks = std::min(g.blocks, static_cast<double>(resident) * device.sm_count);
  const double stage_bytes = 4.0 * (c.BM + c.BN) * c.BK;
  const double in_flight = active_blocks * stage_bytes * std::min<double>(c.stages - 1, g.stages);
  const double dram = std::min(kDramBytesPerUsPerSm * device.sm_count, in_flight / kMemoryLatencyUs);
  const double busy_sms = std::min<double>(g.blocks, device.sm_count);
  const double l2_bytes = g.blocks * g.stages * stage_bytes + 4.0 * static_cast<double>(p.m * p.n * p.batch);
  const bool half_sectors = c.TM == 8 && !operand_layout(c, c.BM, p.op_a == Op::T).k_fast;
  const double output = 4.0 * static_cast<double>(p.m * p.n * p.batch);
  const double traffic = p.bytes() + (half_sectors ? kHalfSectorShare - 1 : 0) * output;
  return std::max(traffic / dram, l2_bytes / (kL2BytesPerUsPerSm * busy_sms));
}

// Latency: a block cannot go through its stages faster than they arrive.
double latency_us(const KernelConfig& c, const Geometry& g, double waves) {
  return waves * g.stages * kMemoryLatencyUs / std::max(1, c.stages - 1) * 0.6;
}

// The slices' tiles go to shared memory and come back, in every block of the busiest multiprocessor.
double slices_us(const DeviceInfo& device, const KernelConfig& c, const Geometry& g) {
  if (c.slices == 1) return 0;
  const double bytes = 2.0 * 4 * c.slices * c.BM * c.BN * ceil_div(g.blocks, device.sm_count);
  return bytes / kSharedBytesPerClock / std::max(1, device.sm_clock_mhz);
}

double reduction_us(const DeviceInfo& device, const Choice& choice, const Geometry& g) {
  if (choice.split_k == 1) return 0;
  const double tile_bytes = 4.0 * choice.config.BM * choice.config.BN;
  const double bytes = g.blocks * tile_bytes;
  const double write = bytes / (kL2BytesPerUsPerSm * std::min<double>(g.blocks, device.sm_count));
  if (choice.reduction == Reduction::kernel)
    return kSecondKernelUs + write + bytes / (kL2BytesPerUsPerSm * device.sm_count) + 0.8;
  // The last block of a tile reads all partial tiles alone.
  const double rounds = ceil_div(g.tiles, device.sm_count);
  return kTicketUs + write + rounds * choice.split_k * tile_bytes / kL2BytesPerUsPerSm;
}

}  // namespace

int blocks_per_sm(const KernelConfig& config, const DeviceLimits& limits) {
  const int by_shared = limits.shared_bytes_per_sm / (worst_shared_bytes(config) + 1024);
  const int by_threads = limits.threads_per_sm / config.threads();
  const int registers = std::min(255, std::max(32, (estimated_registers(config) + 7) / 8 * 8));
  const int by_registers = limits.registers_per_sm / (registers * config.threads());
  return std::clamp(std::min({by_shared, by_threads, std::max(by_registers, config.min_blocks)}), 1, 32);
}

double predicted_us(const DeviceInfo& device, const Choice& choice, const Problem& problem) {
  const Geometry g = geometry_of(choice, problem);
  const KernelVariant variant = variant_for(choice.config, problem, {});
  const int resident = blocks_per_sm(choice.config, device.limits);
  const double waves = ceil_div(g.blocks, static_cast<double>(resident) * device.sm_count);
  const double body =
      std::max({compute_us(device, variant, g, resident), memory_us(device, choice.config, problem, g, resident),
                latency_us(choice.config, g, waves)});
  const double slices = slices_us(device, choice.config, g);
  return kLaunchUs + kPrologueUs + kWaveUs * (waves - 1) + slices + body + reduction_us(device, choice, g) +
         g.blocks * kCtaUs;
}

double floor_us(const DeviceInfo& device, const Problem& problem) {
  const double flops_per_us = 256.0 * device.sm_count * std::max(1, device.sm_clock_mhz);
  return std::max({problem.flops() / flops_per_us, problem.bytes() / (kDramBytesPerUsPerSm * device.sm_count), kLaunchUs});
}

}  // namespace gemm
