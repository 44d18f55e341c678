#include "dispatch/least_times.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "dispatch/cost_families.h"

namespace gemm {
namespace {

constexpr int kNumbers = 127;  // the bits of a key that hold a kernel's number, counted down
constexpr float kTaken = std::numeric_limits<float>::max();
constexpr float kLongestUs = 1e18F;    // its square is a number still
constexpr float kMostParts = 0x1p30F;  // that are counted: further ones change no bound that matters

// As Divisor does it, in the precision that 23 bits allow.
float inverse_of(double divisor) { return static_cast<float>((1 - 0x1p-20) / divisor); }
float parts(float n, float inverse) {
  const float quotient = n * inverse;
  return static_cast<float>(static_cast<int>(quotient < kMostParts ? quotient : kMostParts) + 1);
}

float shorter(float a, float b) { return a < b ? a : b; }
float longer(float a, float b) { return a > b ? a : b; }

// Of arithmetic, memory and latency that go on at once (CostTerms::us).
float together(float a, float b, float c) {
  a = shorter(a, kLongestUs), b = shorter(b, kLongestUs), c = shorter(c, kLongestUs);
  return std::sqrt(a * a + b * b + c * c);
}

double stage_us(const KernelCost& kernel, int ops, int cut_a, int cut_b, bool aligned) {
  if (is_specialized(kernel.config.load)) return kernel.aligned_slots[0] * kernel.us_per_slot;
  const bool tensor_copies = aligned && kernel.config.load == LoadPath::tma;
  const double slots = tensor_copies ? kernel.aligned_slots[ops] : kernel.slots[cost::slots_index(ops, cut_a, cut_b)];
  return slots * kernel.warps * kernel.us_per_slot;
}

}  // namespace

void KernelTimes::begin(size_t count) {
  static_assert(kMost <= kNumbers + 1);
  count_ = count;
  for (size_t i = 0; i < count; ++i)
    keys_[i] = std::bit_cast<float>((std::bit_cast<int>(us[i]) | kNumbers) - static_cast<int>(i));
}

size_t KernelTimes::take() {
  float key = kTaken;
  for (size_t i = 0; i < count_; ++i) key = shorter(keys_[i], key);
  const auto number = static_cast<size_t>(kNumbers - (std::bit_cast<int>(key) & kNumbers));
  keys_[number] = kTaken;
  return number;
}

LeastTimes::LeastTimes(const std::vector<KernelCost>& kernels) {
  for (size_t i = 0; i < kernels.size(); ++i) {
    const KernelCost& kernel = kernels[i];
    const KernelConfig& c = kernel.config;
    sm_count_ = kernel.sm_count;
    inverse_BM_[i] = inverse_of(c.BM), inverse_BN_[i] = inverse_of(c.BN), inverse_BK_[i] = inverse_of(c.BK);
    fixed_us_[i] = static_cast<float>(kernel.least_fixed_us);
    if (c.family != Family::tile) continue;  // launch and memory are all that is sure
    if (!is_specialized(c.load)) latency_us_[i] = static_cast<float>(kernel.latency_us);
    l2_us_[i] = static_cast<float>(kernel.stage_bytes / (cost::kL2BytesPerUsPerSm * sm_count_));
    for (const bool aligned : {false, true})
      for (int ops = 0; ops < 4; ++ops)
        for (int a = 0; a < 3; ++a)
          for (int b = 0; b < 3; ++b)
            stage_us_[aligned][cost::slots_index(ops, a, b)][i] = static_cast<float>(stage_us(kernel, ops, a, b, aligned));
  }
}

void LeastTimes::of(const CostProblem& p, size_t count, KernelTimes& times) const {
  const auto m = static_cast<float>(p.m), n = static_cast<float>(p.n), k = static_cast<float>(p.k);
  const auto batch = static_cast<float>(p.batch), per_sm = inverse_of(sm_count_);
  const auto dram_us = static_cast<float>(p.bytes / (cost::kDramBytesPerUsPerSm * sm_count_));
  const Row& arithmetic_us = stage_us_[p.vec_a == 2 && p.vec_b == 2][cost::slots_index(p.ops, p.cut_a, p.cut_b)];
  for (size_t i = 0; i < count; ++i) {
    const float blocks = parts(m, inverse_BM_[i]) * parts(n, inverse_BN_[i]) * batch;
    const float stages = parts(k, inverse_BK_[i]);
    const float memory_us = longer(dram_us, blocks * stages * l2_us_[i]);
    const float tile_us = stages * arithmetic_us[i];
    // Either the busiest multiprocessor has whole tiles, or k is shared and the parts have to be added.
    const float whole_us = together(parts(blocks, per_sm) * tile_us, memory_us, stages * latency_us_[i]);
    const float shared_us = static_cast<float>(cost::kLeastReductionUs) + together(blocks * per_sm * tile_us, memory_us, 0);
    times.us[i] = fixed_us_[i] + shorter(whole_us, shared_us);
  }
  times.begin(count);
}

}  // namespace gemm
