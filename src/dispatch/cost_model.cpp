#include "dispatch/cost_model.h"

#include "dispatch/cost_families.h"

namespace gemm {
namespace cost {
namespace {

constexpr double kSharedBytesPerClock = 128;  // of an SM
constexpr double kHalfSectorShare = 2.0;      // stores of 8 adjacent rows fill half of each 32-byte sector at a time
constexpr double kLatencyShare = 0.6;         // of a stage's arrival that other stages do not hide
constexpr double kSecondKernelUs = 1.8;       // its launch in a graph, and its first reads
constexpr double kTicketUs = 1.2;             // fence, atomic, first read back
constexpr double kClusterUs = 0.6;            // its two barriers, first read of a peer
constexpr double kPeerBytesPerUs = 60'000;    // that a block reads from its peers' shared memory

}  // namespace

Geometry geometry_of(const Choice& choice, const Problem& p) {
  const KernelConfig& c = choice.config;
  Geometry g{};
  g.tiles =
      ceil_div(static_cast<double>(p.m), c.BM) * ceil_div(static_cast<double>(p.n), c.BN) * static_cast<double>(p.batch);
  g.blocks = g.tiles * choice.split_k;
  g.stages = std::max(1.0, ceil_div(ceil_div(static_cast<double>(p.k), choice.split_k), c.BK));
  return g;
}

double memory_us(const DeviceInfo& device, const KernelConfig& c, const Problem& p, const Geometry& g, double active,
                 double depth) {
  const double stage_bytes = 4.0 * (c.BM + c.BN) * c.BK;
  const double in_flight = active * stage_bytes * std::min<double>(c.stages - 1, depth);
  const double dram = std::min(kDramBytesPerUsPerSm * device.sm_count, in_flight / kMemoryLatencyUs);
  const double busy_sms = std::min<double>(active, device.sm_count);
  const double output = 4.0 * static_cast<double>(p.m * p.n * p.batch);
  const double l2_bytes = g.blocks * g.stages * stage_bytes + output;
  const bool half_sectors = c.TM == 8 && !layout_a(variant_for(c, p, {})).k_fast;
  const double traffic = p.bytes() + (half_sectors ? kHalfSectorShare - 1 : 0) * output;
  return std::max(traffic / dram, l2_bytes / (kL2BytesPerUsPerSm * busy_sms));
}

double latency_us(const KernelConfig& c, double stages) {
  return stages * kMemoryLatencyUs * kLatencyShare / std::max(1, c.stages - 1);
}

double slices_us(const DeviceInfo& device, const KernelConfig& c, const Geometry& g) {
  if (c.slices == 1) return 0;
  const double bytes = 2.0 * 4 * c.slices * c.BM * c.BN * ceil_div(g.blocks, device.sm_count);
  return bytes / kSharedBytesPerClock / clock_mhz(device);
}

double split_us(const DeviceInfo& device, const Choice& choice, const Geometry& g) {
  if (choice.split_k == 1) return 0;
  const double tile_bytes = 4.0 * choice.config.BM * choice.config.BN;
  // Each block reads its share of all the parts, which is as much as one tile.
  if (choice.reduction == Reduction::cluster)
    return kClusterUs + ceil_div(g.blocks, device.sm_count) * tile_bytes / kPeerBytesPerUs;
  const double bytes = g.blocks * tile_bytes;
  const double write = bytes / (kL2BytesPerUsPerSm * std::min<double>(g.blocks, device.sm_count));
  if (choice.reduction == Reduction::kernel) return kSecondKernelUs + write + bytes / (kL2BytesPerUsPerSm * device.sm_count);
  // The last block of a tile reads all partial tiles alone.
  const double rounds = ceil_div(g.tiles, device.sm_count);
  return kTicketUs + write + rounds * choice.split_k * tile_bytes / kL2BytesPerUsPerSm;
}

}  // namespace cost

int blocks_per_sm(const KernelConfig& config, const DeviceLimits& limits) {
  // Persistent blocks: as many are launched.
  if (is_specialized(config.load)) return config.min_blocks;
  const int by_shared = limits.shared_bytes_per_sm / (worst_shared_bytes(config) + 1024);
  const int by_threads = limits.threads_per_sm / config.threads();
  const int registers = std::min(255, std::max(32, (estimated_registers(config) + 7) / 8 * 8));
  const int by_registers = limits.registers_per_sm / (registers * config.threads());
  return std::clamp(std::min({by_shared, by_threads, std::max(by_registers, config.min_blocks)}), 1, 32);
}

double predicted_us(const DeviceInfo& device, const Choice& choice, const Problem& problem, int resident) {
  switch (choice.config.family) {
    case Family::stream: return cost::stream_us(device, choice, problem, resident);
    case Family::batch: return cost::batch_us(device, choice, problem);
    default: break;
  }
  if (is_specialized(choice.config.load)) return cost::specialized_us(device, choice, problem);
  return cost::tile_us(device, choice, problem, resident);
}

double predicted_us(const DeviceInfo& device, const Choice& choice, const Problem& problem) {
  return predicted_us(device, choice, problem, blocks_per_sm(choice.config, device.limits));
}

double floor_us(const DeviceInfo& device, const Problem& problem) {
  const double flops_per_us = 2 * cost::kLanesPerSm * device.sm_count * cost::clock_mhz(device);
  return std::max(
      {problem.flops() / flops_per_us, problem.bytes() / (cost::kDramBytesPerUsPerSm * device.sm_count), cost::kLaunchUs});
}

}  // namespace gemm
