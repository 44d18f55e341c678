// The families without a ring of shared memory: stream and batch.
#include "dispatch/cost_families.h"

namespace gemm::cost {
namespace {

constexpr double kStreamShare = 0.87;   // of the DRAM bandwidth that streaming reaches: 4096x1x4096 takes 19.6 us
constexpr double kStreamSetupUs = 0.6;  // the short operand's first chunk, and adding up lanes
constexpr double kBatchSetupUs = 0.2;   // 4096 matrices of 16^3 take 5.0 us, 2.9 of them DRAM
constexpr double kFmaShare = 0.4;       // of the FMA rate, between loads that no other warp of the block shares

double fmas_per_us(const DeviceInfo& device, double busy_sms) { return kLanesPerSm * busy_sms * clock_mhz(device); }

}  // namespace

double stream_us(const DeviceInfo& device, const Choice& choice, const Problem& p, int resident) {
  const KernelConfig& c = choice.config;
  const Geometry g = geometry_of(choice, p);
  const double active = std::min(g.blocks, static_cast<double>(resident) * device.sm_count);
  const double busy_sms = std::min<double>(g.blocks, device.sm_count);
  const double in_flight = active * c.threads() * c.stages * stream_shape(c).lane_rows * 16;
  const double dram = std::min(kStreamShare * kDramBytesPerUsPerSm * device.sm_count, in_flight / kMemoryLatencyUs);
  // Each tile reads its rows of the long operand and all of the short one.
  const double l2_bytes = g.tiles * 4.0 * (c.BM + c.BN) * static_cast<double>(p.k);
  const double memory = std::max(p.bytes() / dram, l2_bytes / (kL2BytesPerUsPerSm * busy_sms));
  const double fmas = g.tiles * c.BM * c.BN * static_cast<double>(p.k);
  return kLaunchUs + kStreamSetupUs +
         overlapped(fmas / fmas_per_us(device, busy_sms) / kFmaShare, memory, kMemoryLatencyUs) +
         split_us(device, choice, g) + g.blocks * kCtaUs;
}

double batch_us(const DeviceInfo& device, const Choice& choice, const Problem& p) {
  const KernelConfig& c = choice.config;
  const double blocks = ceil_div(static_cast<double>(p.batch), matrices_per_block(c));
  const double memory = p.bytes() / (kDramBytesPerUsPerSm * device.sm_count);
  const double fmas = static_cast<double>(p.batch) * c.BM * c.BN * static_cast<double>(p.k);
  const double busy_sms = std::min<double>(blocks, device.sm_count);
  return kLaunchUs + kBatchSetupUs + overlapped(fmas / fmas_per_us(device, busy_sms) / kFmaShare, memory, blocks * kCtaUs);
}

}  // namespace gemm::cost
