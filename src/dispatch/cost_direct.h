// The families without a ring of shared memory: stream and batch.
#pragma once

#include "dispatch/cost_families.h"

namespace gemm::cost {

inline constexpr double kStreamShare = 0.87;   // of the DRAM bandwidth that streaming reaches: 4096x1x4096 takes 19.6 us
inline constexpr double kStreamSetupUs = 0.6;  // the short operand's first chunk, and adding up lanes
inline constexpr double kBatchSetupUs = 0.2;   // 4096 matrices of 16^3 take 5.0 us, 2.9 of them DRAM
inline constexpr double kFmaShare = 0.4;       // of the FMA rate, between loads that no other warp of the block shares

// But for the reduction of a split k.
template <class N>
Terms<N> stream_terms(const Product<N>& product, const Split<N>& split) {
  const KernelNumbers<N>& kernel = product.kernel;
  const CostProblem& p = product.problem;
  const N active = least(split.blocks, kernel.blocks);
  const N busy_sms = least(split.blocks, kernel.sm_count);
  const N in_flight = active * kernel.stream_bytes;
  const N dram = least(kStreamShare * kDramBytesPerUsPerSm * kernel.sm_count, in_flight * (1 / kMemoryLatencyUs));
  // Each tile reads its rows of the long operand and all of the short one.
  const N l2_bytes = product.tiles * (kernel.BM + kernel.BN) * (4 * p.k);
  Terms<N> terms;
  terms.fixed = kLaunchUs + kStreamSetupUs + split.blocks * kCtaUs;
  terms.compute = product.tiles * kernel.BM * kernel.BN * p.k / (kLanesPerSm * kFmaShare * busy_sms) * kernel.us_per_slot;
  terms.memory = most(p.bytes / dram, l2_bytes / (kL2BytesPerUsPerSm * busy_sms));
  terms.latency = kMemoryLatencyUs;
  return terms;
}

template <class N>
Terms<N> batch_terms(const Product<N>& product) {
  const KernelNumbers<N>& kernel = product.kernel;
  const CostProblem& p = product.problem;
  const N blocks = kernel.by_matrices.parts(p.batch);
  const N busy_sms = least(blocks, kernel.sm_count);
  Terms<N> terms;
  terms.fixed = kLaunchUs + kBatchSetupUs;
  terms.compute = kernel.BM * kernel.BN * (p.batch * p.k) / (kLanesPerSm * kFmaShare * busy_sms) * kernel.us_per_slot;
  terms.memory = p.bytes / (kDramBytesPerUsPerSm * kernel.sm_count);
  terms.latency = blocks * kCtaUs;
  return terms;
}

}  // namespace gemm::cost
