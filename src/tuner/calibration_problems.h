// Random problems that nobody tuned: those that the selector is fitted on, and those that it is judged by.
#pragma once

#include <string>
#include <vector>

#include "kernels/problem.h"

namespace gemm {

// What a calibration problem is for, and where it was drawn from.
struct CalibrationProblem {
  Problem problem;
  bool certificate = false;  // takes no part in the fit
  // Every dimension drawn alike, one matrix; else one of the kinds of problem that lie outside: skinny, deep or shallow k,
  // tall, batches of small matrices.
  bool box = true;
  // Every kernel that may be among the fastest is timed; else only what a model that is fitted to the surveyed problems
  // favours.
  bool survey = true;
};

// `count` different problems with all op pairs and alignments, in an order in which any beginning has its share of each
// kind; 250 of the first 550 are for the certificate, and the first 800 for the survey. The beginning of a longer list is
// the shorter list, everywhere.
std::vector<CalibrationProblem> calibration_problems(size_t count, bool tiny);

}  // namespace gemm
