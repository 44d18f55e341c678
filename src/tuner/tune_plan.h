// What tuning would do, and how long that would take.
#pragma once

#include <vector>

#include "kernels/device.h"
#include "tuner/shapes.h"
#include "tuner/space.h"
#include "tuner/trial_log.h"

namespace gemm {

struct TunePlan {
  size_t combinations = 0, valid_configs = 0, shapes = 0, shapes_done = 0;
  size_t candidates = 0, kernels = 0;  // of the shapes that are left
  double minutes = 0;                  // on this many cores
};

// By the same pre-ranking as in tuning. `done` is what the trial log has.
TunePlan plan_tuning(const SearchSpace& space, const std::vector<Shape>& shapes, const DeviceInfo& device, int candidates,
                     int calibration, int cores, const EvidenceMap& done);

}  // namespace gemm
