// The stated model behind every emulated time. It is for exercising the pipeline, not for predicting a GPU.
#include <algorithm>
#include <cmath>

#include "emulator/emulated_device.h"

namespace gemm {
namespace {

constexpr double kLaunchUs = 1.5;          // of a kernel in a graph, rounded up
constexpr double kBytesPerUs = 4.3e6;      // H200, measured device copy (shared/PERFORMANCE.md)
constexpr double kFmaPerClockAndSm = 128;  // lanes of an SM
constexpr double kReduceLaunchUs = 1.0;    // second launch of a split

// Share of issue slots that FMAs get: each register of a fragment costs about 0.7 slots (shared/PERFORMANCE.md).
double issue_share(const KernelConfig& c) {
  const double fma = c.accumulators();
  return fma / (fma + 0.7 * (c.thread_rows() + c.thread_columns()));
}

}  // namespace

double modelled_time_us(const DeviceInfo& info, const Choice& choice, const Problem& p) {
  const KernelConfig& c = choice.config;
  const double tiles =
      std::ceil(static_cast<double>(p.m) / c.BM) * std::ceil(static_cast<double>(p.n) / c.BN) * static_cast<double>(p.batch);
  const int split = effective_split(c, p, choice.split_k);
  const double blocks = tiles * split;
  const double blocks_per_sm = std::max(1, info.limits.threads_per_sm / 2 / c.threads());
  const double waves = std::ceil(blocks / (info.sm_count * blocks_per_sm));
  const double k_steps = std::ceil(static_cast<double>(p.k) / split / c.BK) * c.BK;
  const double clocks_per_block = static_cast<double>(c.BM) * c.BN * k_steps / kFmaPerClockAndSm / issue_share(c);
  const double compute_us =
      waves * std::min(blocks_per_sm, blocks / info.sm_count + 1) * clocks_per_block / info.sm_clock_mhz;
  const double memory_us = (p.bytes() + 2.0 * static_cast<double>(workspace_bytes(choice, p))) / kBytesPerUs;
  const double reduce_us = split > 1 && choice.reduction == Reduction::kernel ? kReduceLaunchUs : 0;
  return kLaunchUs + std::max(compute_us, memory_us) + reduce_us;
}

}  // namespace gemm
