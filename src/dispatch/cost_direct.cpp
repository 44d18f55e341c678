// The families without a ring of shared memory: stream and batch.
#include "dispatch/cost_families.h"

namespace gemm::cost {
namespace {

constexpr double kStreamShare = 0.87;   // of the DRAM bandwidth that streaming reaches: 4096x1x4096 takes 19.6 us
constexpr double kStreamSetupUs = 0.6;  // the short operand's first chunk, and adding up lanes
constexpr double kBatchSetupUs = 0.2;   // 4096 matrices of 16^3 take 5.0 us, 2.9 of them DRAM
constexpr double kFmaShare = 0.4;       // of the FMA rate, between loads that no other warp of the block shares

}  // namespace

double least_fixed_us(const KernelConfig& c) {
  if (c.family != Family::tile) return kLaunchUs + (c.family == Family::stream ? kStreamSetupUs : kBatchSetupUs);
  return kLaunchUs + kPrologueUs + (is_specialized(c.load) ? kSpecializedSetupUs : 0);
}

CostTerms stream_terms(const ProductCost& cost, const Split& split, Reduction reduction) {
  const KernelCost& kernel = cost.kernel;
  const CostProblem& p = cost.problem;
  const KernelConfig& c = kernel.config;
  const double active = std::min(split.blocks, kernel.resident * kernel.sm_count);
  const double busy_sms = std::min(split.blocks, kernel.sm_count);
  const double in_flight = active * c.threads() * c.stages * stream_shape(c).lane_rows * 16;
  const double dram = std::min(kStreamShare * kDramBytesPerUsPerSm * kernel.sm_count, in_flight * (1 / kMemoryLatencyUs));
  // Each tile reads its rows of the long operand and all of the short one.
  const double l2_bytes = cost.tiles * 4.0 * (c.BM + c.BN) * p.k;
  CostTerms terms;
  terms.fixed = kLaunchUs + kStreamSetupUs + split.blocks * kCtaUs;
  terms.compute = cost.tiles * c.BM * c.BN * p.k / (kLanesPerSm * busy_sms * kFmaShare) * kernel.us_per_slot;
  terms.memory = std::max(p.bytes / dram, l2_bytes / (kL2BytesPerUsPerSm * busy_sms));
  terms.latency = kMemoryLatencyUs;
  terms.reduction = split_us(cost, split, reduction);
  return terms;
}

CostTerms batch_terms(const ProductCost& cost) {
  const KernelCost& kernel = cost.kernel;
  const CostProblem& p = cost.problem;
  const KernelConfig& c = kernel.config;
  const double blocks = Divisor(matrices_per_block(c)).parts(p.batch);
  const double busy_sms = std::min(blocks, kernel.sm_count);
  CostTerms terms;
  terms.fixed = kLaunchUs + kBatchSetupUs;
  terms.compute = p.batch * c.BM * c.BN * p.k / (kLanesPerSm * busy_sms * kFmaShare) * kernel.us_per_slot;
  terms.memory = p.bytes / (kDramBytesPerUsPerSm * kernel.sm_count);
  terms.latency = blocks * kCtaUs;
  return terms;
}

}  // namespace gemm::cost
