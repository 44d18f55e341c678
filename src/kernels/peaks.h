// The two kernels that measure a GPU's ceilings (device/peaks.cuh) on the host.
#pragma once

#include <cstdint>

#include "kernels/device.h"
#include "kernels/kernel_spec.h"

namespace gemm {

KernelSpec ffma_peak_spec();
KernelSpec copy_peak_spec();

// One launch that fills every multiprocessor once: `out` holds ffma_peak_threads() floats.
int64_t ffma_peak_threads(const DeviceInfo& info);
double ffma_peak_flops(const DeviceInfo& info, int rounds);
Result<bool> launch_ffma_peak(Device& device, const Kernel& kernel, float* out, int rounds, Stream stream);

// Copies `bytes`, a multiple of 16, between 16-byte aligned buffers.
Result<bool> launch_copy_peak(Device& device, const Kernel& kernel, const float* from, float* to, int64_t bytes,
                              Stream stream);

}  // namespace gemm
