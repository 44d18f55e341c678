// From the evidence about a problem to its point: the winner, its ties, and what else may serve it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dispatch/table.h"
#include "tuner/trial.h"

namespace gemm {

// One choice that was measured to be right, with its most careful measurement.
struct PointOption {
  Choice choice;
  Stage stage = Stage::screen;
  TimeStats time_us;
  double max_scaled_error = 0;
  int registers = 0, spill_bytes = 0, shared_bytes = 0;
};

struct PointResult {
  Problem problem;
  std::vector<PointOption> options;  // the winner, then the others by time
  std::vector<std::string> ties;     // of the winner, in the order in which ties are broken
  std::optional<double> cublas_us, cublaslt_best_us;
};

// Ties are broken by fewer splits, then the smaller kernel id, then the ticket reduction, then no copies of operands.
bool breaks_tie_before(const Choice& a, const Choice& b);

PointResult evaluate(const Evidence& evidence);

// A point of an existing table, as a result that can share a portfolio with new ones.
std::optional<PointResult> from_table_point(const Table& table, const TablePoint& point);

// The option that serves the point when only these kernels exist: the winner if it is one of them, else the fastest that is;
// nullptr when none is.
const PointOption* served_by(const PointResult& point, const std::set<std::string>& portfolio);

}  // namespace gemm
