// What tuning would do, and how long that would take.
#pragma once

#include <vector>

#include "kernels/device.h"
#include "tuner/shapes.h"
#include "tuner/space.h"

namespace gemm {

// By the same pre-ranking as in tuning.
struct TunePlan {
  size_t combinations = 0, valid_configs = 0, shapes = 0, candidates = 0, kernels = 0;
  double minutes = 0;  // on this many cores
};
TunePlan plan_tuning(const SearchSpace& space, const std::vector<Shape>& shapes, const DeviceInfo& device, int candidates,
                     int calibration, int cores);

}  // namespace gemm
