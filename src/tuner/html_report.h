// A table as one HTML file for people: nothing is loaded from elsewhere, and what the table does not have is named.
#pragma once

#include <string>
#include <vector>

#include "dispatch/table.h"
#include "tuner/bench.h"

namespace gemm {

struct ReportInput {
  const Table& table;
  std::string table_path;
  std::vector<std::string> warnings;  // of reading the table
  std::vector<BenchRow> bench;        // empty: none was given
  std::string bench_path;
};

// The whole page.
std::string html_report(const ReportInput& input);

}  // namespace gemm
