// The table, derived from the evidence in the trial log and from an older table of the same device.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "dispatch/table.h"
#include "tuner/certificate.h"
#include "tuner/points.h"

namespace gemm {

// The way of measuring; a change makes older logs unusable for resuming.
inline constexpr const char* kMethodVersion = "1";

// What was measured on random problems.
struct CalibrationResults {
  std::vector<PointResult> survey;      // with all kernels
  std::vector<PointResult> favourites;  // with those that the selector would decide between
  std::vector<CertificateCase> certificate;
};

// `environment` has what the worker reported; host, version, command and date are added. Without a model. Kernels of the
// portfolio that serve no point are known from the survey of random problems.
Table make_table(const DeviceInfo& device, const std::map<std::string, std::string>& environment,
                 const std::string& command_line, const std::vector<PointResult>& points,
                 const std::set<std::string>& portfolio, const std::vector<PointResult>& survey = {});

// Gives the table its model, which takes seconds (model_fit.h). Points take part too, with all that the log has of them, for
// random problems are seldom square, a power of two in each dimension, or a large batch.
void fit_table(Table& table, const CalibrationResults& calibration, const std::vector<PointResult>& points);
// And the certificate of that model, with the curve of quality against the portfolio's size.
void certify_table(Table& table, const CalibrationResults& calibration);

// Where the older table's model was fitted on more than twice the new one's random problems, since that has just begun or
// leaves them out, and it knows half of the new kernels: that model, its traits for the kernels that are still there, and
// its certificate where all of them are. Returns whether that is so.
bool keep_older_calibration(Table& table, const Table& older);

// New points, and those of the older table that were not tuned again.
std::vector<PointResult> with_older_points(std::vector<PointResult> points, const Table& older);

}  // namespace gemm
