// What is timed on the random problems of a calibration.
#pragma once

#include <vector>

#include "dispatch/table.h"
#include "tuner/calibration_problems.h"

namespace gemm {

// For each problem every configuration that may serve it, with the split that the cost model likes best and, where it is
// close to the best of all, another one. Left out is what it finds hopeless, and kernels that would be compiled for a few
// problems and are not among the best of any.
std::vector<std::vector<Choice>> survey_choices(const std::vector<CalibrationProblem>& problems,
                                                const std::vector<KernelConfig>& portfolio, const DeviceInfo& device);

// For each problem the few choices between which the selector would have to decide: the kernels that the table's learned
// model finds fastest, and another split of each. None where the table has no model.
std::vector<std::vector<Choice>> favourite_choices(const std::vector<CalibrationProblem>& problems, const Table& table);

}  // namespace gemm
