// What tuning records: the outcome of one candidate on one problem at one stage, and everything known about a problem.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/launch.h"
#include "kernels/problem.h"

namespace gemm {

// How carefully a candidate is timed: `screen` a few launches, `refine` more, `finals` interleaved with the baselines.
// Random problems that are not tuned have two stages of their own, both interleaved with cuBLAS: `calibration`, short, and
// `certificate`, about as careful as `refine`.
enum class Stage { calibration, certificate, screen, refine, finals };

constexpr bool is_of_calibration(Stage stage) { return stage == Stage::calibration || stage == Stage::certificate; }

// Why a trial has no time; the words of the T4 format.
enum class Invalidity { correct, compile, runtime, correctness, timeout };

struct Outcome {
  Invalidity invalidity = Invalidity::correct;
  std::string reason;  // empty where correct
  double compile_ms = 0;
  int registers = 0, spill_bytes = 0, shared_bytes = 0;
  double max_scaled_error = 0;   // worst |error| / bound over the problem
  std::vector<double> times_us;  // samples

  bool correct() const { return invalidity == Invalidity::correct; }
};

struct Trial {
  std::string timestamp;  // ISO 8601, UTC
  Problem problem;
  Choice choice;
  Stage stage = Stage::screen;
  Outcome outcome;
};

// The baselines' samples, taken interleaved with the finalists of the same problem; empty where there is no such library.
struct BaselineTimes {
  std::vector<double> cublas_us;
  std::vector<double> cublaslt_best_us;
  std::string cublaslt_algorithm;
};

// Everything that is known about one problem.
struct Evidence {
  Problem problem;
  std::vector<Trial> trials;
  BaselineTimes baselines;
  bool finished = false;
  std::string skipped;  // why this run could not tune the problem; empty where it did not try or could

  // The trial of this choice at this stage, or nullptr.
  const Trial* find(const Choice& choice, Stage stage) const;
  // Whether this problem was drawn at random and never tuned.
  bool only_calibration() const;
};

const char* to_string(Stage stage);
const char* to_string(Invalidity invalidity);

}  // namespace gemm
