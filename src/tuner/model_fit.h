// Fits what calibration adds to the cost model (dispatch/calibrated_model.h) to measured times.
#pragma once

#include <vector>

#include "dispatch/table.h"
#include "tuner/points.h"

namespace gemm {

// Sets the factors of the table's kernels and of cuBLAS, and the log ratios that they leave, from everything that was
// measured with these kernels: tuned problems and random ones. Kernels that were never measured get no factors.
//
// Gauss-Newton on log(measured / predicted), with a ridge that draws the factors of each kind of kernel to 1 and those of a
// kernel to those of its kind. Times far from the best of their problem count little: what matters is which kernel comes
// first. How strongly it draws was chosen on an H200, where four times more or less changed nothing beyond noise.
void fit_model(Table& table, const std::vector<PointResult>& measured);

}  // namespace gemm
