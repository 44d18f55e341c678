// The analytic model of a kernel's time. The tuner ranks candidates by it before anything is compiled, where it only has to
// keep the good ones in; the selector, with a factor for each kernel, chooses by it for problems that nobody tuned.
// docs/tuning.md states it in words.
#pragma once

#include "kernels/device.h"
#include "kernels/launch.h"

namespace gemm {

// Predicted time of one execution in microseconds. Callers that compare many splits of one configuration know its
// blocks_per_sm already.
double predicted_us(const DeviceInfo& device, const Choice& choice, const Problem& problem, int resident);
double predicted_us(const DeviceInfo& device, const Choice& choice, const Problem& problem);

// A lower bound of any kernel's time: arithmetic peak, device memory, launch.
double floor_us(const DeviceInfo& device, const Problem& problem);

// Blocks of this configuration that fit one multiprocessor at a time.
int blocks_per_sm(const KernelConfig& config, const DeviceLimits& limits);

}  // namespace gemm
