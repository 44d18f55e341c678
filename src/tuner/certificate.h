// How good the selector's choices are on random problems that it was not fitted on.
#pragma once

#include <optional>
#include <vector>

#include "dispatch/table.h"
#include "tuner/points.h"

namespace gemm {

struct CertificateCase {
  PointResult measured;
  bool box = true;
};

// What the table's selector chose for a problem and the fastest others, to be timed side by side.
struct Contest {
  Problem problem;
  std::vector<Choice> choices;
};

// Of the cases whose choice was not timed side by side with others yet.
std::vector<Contest> open_contests(const Table& table, const std::vector<CertificateCase>& cases);

// Compares times of Stage::certificate only: the fastest of a hundred short measurements is one that noise has favoured.
// Cases without are left out.
Certificate make_certificate(const Table& table, const std::vector<CertificateCase>& cases);

// See Table::portfolio_curve. The order is found on `ordered_by`, the quality on `judged_by`; on both, all kernels were
// timed that may be among the fastest.
std::vector<double> portfolio_curve(const Table& table, const std::vector<PointResult>& ordered_by,
                                    const std::vector<CertificateCase>& judged_by);

}  // namespace gemm
