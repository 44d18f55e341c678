// Fits what calibration adds to the cost model (dispatch/learned_model.h) to measured times.
#pragma once

#include <vector>

#include "dispatch/table.h"
#include "tuner/points.h"

namespace gemm {

// Sets the table's time model, and the traits of its kernels, from everything that was measured with these kernels. Kernels
// that were never measured get no traits. The same measurements give the same model.
void fit_model(Table& table, const std::vector<PointResult>& measured);

}  // namespace gemm
