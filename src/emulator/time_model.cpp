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
  // Lanes of the stream family share k: less than one sub-tile for each.
  const double rows = c.TM * std::max(1, c.WMITER()), columns = c.thread_columns();
  return rows * columns / (rows * columns + 0.7 * (rows + columns));
}

double blocks_per_sm(const DeviceInfo& info, const KernelConfig& c) {
  if (is_specialized(c.load)) return c.min_blocks;
  return std::max(1, info.limits.threads_per_sm / 2 / c.threads());
}

// How often each resident block computes a tile; stream-k shares the last waves out evenly.
double waves_of(double blocks, double slots, Reduction reduction) {
  return reduction == Reduction::stream_k ? std::max(1.0, blocks / slots) : std::ceil(blocks / slots);
}

}  // namespace

double modelled_time_us(const DeviceInfo& info, const Choice& choice, const Problem& p) {
  const KernelConfig& c = choice.config;
  const double tiles =
      std::ceil(static_cast<double>(p.m) / c.BM) * std::ceil(static_cast<double>(p.n) / c.BN) * static_cast<double>(p.batch);
  const int split = effective_split(c, p, choice.split_k);
  const double blocks = tiles * split;
  const double resident = blocks_per_sm(info, c);
  const double waves = waves_of(blocks, info.sm_count * resident, choice.reduction);
  const double k_steps = std::ceil(static_cast<double>(p.k) / split / c.BK) * c.BK;
  const double clocks_per_block = static_cast<double>(c.BM) * c.BN * k_steps / kFmaPerClockAndSm / issue_share(c);
  const double compute_us = waves * std::min(resident, blocks / info.sm_count + 1) * clocks_per_block / info.sm_clock_mhz;
  const double memory_us = (p.bytes() + 2.0 * static_cast<double>(workspace_bytes(choice, p, info.sm_count))) / kBytesPerUs;
  const double reduce_us = split > 1 && choice.reduction == Reduction::kernel ? kReduceLaunchUs : 0;
  return kLaunchUs + std::max(compute_us, memory_us) + reduce_us;
}

}  // namespace gemm
