#include "kernels/peaks.h"

#include "kernels/kernel_args.h"

namespace gemm {
namespace {

constexpr int kThreads = 256;

int64_t ffma_blocks(const DeviceInfo& info) { return int64_t{info.sm_count} * (info.limits.threads_per_sm / kThreads); }

}  // namespace

KernelSpec ffma_peak_spec() { return {"ffma_peak", "peaks.cuh", "gemm::ffma_peak", "gemm::FfmaPeakArgs", kThreads, 1}; }

KernelSpec copy_peak_spec() { return {"copy_peak", "peaks.cuh", "gemm::copy_peak", "gemm::CopyPeakArgs", kThreads, 1}; }

int64_t ffma_peak_threads(const DeviceInfo& info) { return ffma_blocks(info) * kThreads; }

double ffma_peak_flops(const DeviceInfo& info, int rounds) {
  return 2.0 * rounds * kPeakRepeats * kPeakChains * static_cast<double>(ffma_peak_threads(info));
}

Result<bool> launch_ffma_peak(Device& device, const Kernel& kernel, float* out, int rounds, Stream stream) {
  // factor near 1 and a small term, so that the chains stay finite and never become subnormal.
  const FfmaPeakArgs args{out, rounds, 0.999f, 0.001f, 1e-7f};
  const Grid grid{static_cast<unsigned>(ffma_blocks(device.info())), 1, 1};
  return device.launch(kernel, grid, kThreads, 0, &args, sizeof args, stream);
}

Result<bool> launch_copy_peak(Device& device, const Kernel& kernel, const float* from, float* to, int64_t bytes,
                              Stream stream) {
  const CopyPeakArgs args{from, to, bytes / 16};
  constexpr int64_t kPerBlock = int64_t{kThreads} * kCopyQuads;
  const Grid grid{static_cast<unsigned>((args.quads + kPerBlock - 1) / kPerBlock), 1, 1};
  return device.launch(kernel, grid, kThreads, 0, &args, sizeof args, stream);
}

}  // namespace gemm
