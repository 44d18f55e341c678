// What is known about a CUDA GPU before it is used. Used by the CUDA device only.
#pragma once

#include "kernels/device.h"
#include "kernels/result.h"

namespace gemm {

// The oldest GPUs that kernels are written for: sm_75 (Turing).
inline constexpr int kOldestComputeCapability = 75;

// Failure: no driver, no GPU, no GPU of this number, or too old; with what to do.
Result<DeviceInfo> cuda_device_info(int index);

}  // namespace gemm
