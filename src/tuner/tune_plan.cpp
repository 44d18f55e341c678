#include "tuner/tune_plan.h"

#include <algorithm>
#include <set>
#include <string>

#include "dispatch/cost_model.h"
#include "kernels/kernel_spec.h"
#include "tuner/calibration_problems.h"
#include "tuner/candidates.h"
#include "tuner/worker.h"

namespace gemm {
namespace {

// On an H200, 187 problems (2,708 kernels by this plan) took 310 s, which kept 12 compilers busy; 800 surveyed problems took
// 105 s, 4,200 of favourites 95 s, fits 35 s and contests 14 s.
constexpr double kCompileSeconds = 1.4;       // per kernel and thread, neighbours' kernels included
constexpr double kPointSeconds = 0.7;         // of measuring
constexpr double kRunsPerCandidate = 12;      // of a slow kernel
constexpr double kSurveyedSeconds = 0.13;     // per problem of the calibration, with the compiling
constexpr double kFavouritesSeconds = 0.023;  // per problem of which only favourites are timed
constexpr double kFitSeconds = 50;            // of fits and contests, once

double calibration_seconds(int problems, bool tiny, const EvidenceMap& done) {
  double seconds = 0;
  for (const CalibrationProblem& one : calibration_problems(static_cast<size_t>(problems), tiny))
    if (done.count(to_string(one.problem)) == 0) seconds += one.survey ? kSurveyedSeconds : kFavouritesSeconds;
  return seconds + (tiny || problems == 0 ? 0 : kFitSeconds);
}

}  // namespace

TunePlan plan_tuning(const SearchSpace& space, const std::vector<Shape>& shapes, const DeviceInfo& device, int candidates,
                     int calibration, int cores, const EvidenceMap& done) {
  const std::vector<KernelConfig> configs = valid_configs(space, device.limits);
  CandidateRanker ranker(device, configs, space.extra, candidates);
  TunePlan plan;
  plan.combinations = space.combinations();
  plan.valid_configs = configs.size();
  plan.shapes = shapes.size();
  std::set<std::string> kernels;
  double measuring_s = 0;
  for (const Shape& shape : shapes) {
    const std::vector<Choice> choices = ranker.candidates(shape.problem);
    if (const auto found = done.find(to_string(shape.problem)); found != done.end() && found->second.finished) {
      ++plan.shapes_done;
      continue;
    }
    plan.candidates += choices.size();
    for (const Choice& choice : choices) kernels.insert(variant_spec(variant_of(choice, shape.problem, {})).name);
    measuring_s +=
        kPointSeconds + kRunsPerCandidate * static_cast<double>(choices.size()) * 1.5e-6 * floor_us(device, shape.problem);
  }
  plan.kernels = kernels.size();
  const double compiling_s = kCompileSeconds * static_cast<double>(plan.kernels) / compile_threads(cores);
  plan.minutes = (std::max(measuring_s, compiling_s) + calibration_seconds(calibration, device.emulated, done)) / 60;
  return plan;
}

}  // namespace gemm
