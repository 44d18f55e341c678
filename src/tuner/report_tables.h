// The tables of the HTML report.
#pragma once

#include <string>
#include <vector>

#include "dispatch/table.h"
#include "tuner/report_rows.h"

namespace gemm {

// Kernels with the points that each wins, resources and parameters.
std::string portfolio_table(const Table& table);

// One column for each group of problems of the certificate.
std::string certificate_table(const Certificate& certificate);

// A line for each row. Winners that the portfolio has lead to their line there.
std::string points_table(const Table& table, const std::vector<ReportRow>& rows);
std::string bench_table(const Table& table, const std::vector<ReportRow>& rows);

// Geometric means for each group, and over all.
std::string means_table(const std::vector<ReportRow>& rows);

}  // namespace gemm
