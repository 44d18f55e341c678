// The ceilings of a GPU, measured: what no kernel can be faster than.
#pragma once

#include "kernels/device.h"
#include "kernels/problem.h"

namespace gemm {

struct Peaks {
  double flops_per_us = 0;  // FP32 multiply-adds, two operations each
  double bytes_per_us = 0;  // device copy, reads and writes counted
};

// Runs two small kernels. On the emulated device the figures are nominal ones, not measured. Failure: the kernels cannot be
// built or there is no memory for the copy.
Result<Peaks> measure_peaks(Device& device);

// max(flops / peak, bytes / bandwidth).
double floor_us(const Peaks& peaks, const Problem& problem);

}  // namespace gemm
