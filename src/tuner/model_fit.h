// Fits what calibration adds to the cost model (dispatch/learned_model.h) to measured times.
#pragma once

#include <vector>

#include "dispatch/table.h"
#include "tuner/points.h"

namespace gemm {

// Sets the table's time model, and the traits of its kernels, from everything that was measured with these kernels, on
// random problems and on tuned points. Where no kernel was timed on a random one there is no model, and kernels that were
// timed on none get no traits. The same measurements give the same model.
void fit_model(Table& table, const std::vector<PointResult>& random, const std::vector<PointResult>& points = {});

}  // namespace gemm
