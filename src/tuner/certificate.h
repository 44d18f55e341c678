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

// Choices of the table's selector that were not timed yet, one for each case that has one.
struct UntimedChoice {
  Problem problem;
  Choice choice;
};
std::vector<UntimedChoice> untimed_choices(const Table& table, const std::vector<CertificateCase>& cases);

// Cases whose choice was not timed are left out.
Certificate make_certificate(const Table& table, const std::vector<CertificateCase>& cases);

// See Table::portfolio_curve. The order is found on `ordered_by`, the quality on `judged_by`.
std::vector<double> portfolio_curve(const Table& table, const std::vector<PointResult>& ordered_by,
                                    const std::vector<CertificateCase>& judged_by);

}  // namespace gemm
