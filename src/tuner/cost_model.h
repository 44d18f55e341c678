// The analytic model that ranks candidates before anything is compiled. It only has to keep the good ones in; measuring
// decides. docs/tuning.md states it in words.
#pragma once

#include "kernels/device.h"
#include "kernels/launch.h"

namespace gemm {

// Predicted time of one execution in microseconds.
double predicted_us(const DeviceInfo& device, const Choice& choice, const Problem& problem);

// A lower bound of any kernel's time: arithmetic peak, device memory, launch.
double floor_us(const DeviceInfo& device, const Problem& problem);

// Blocks of this configuration that fit one multiprocessor at a time.
int blocks_per_sm(const KernelConfig& config, const DeviceLimits& limits);

}  // namespace gemm
