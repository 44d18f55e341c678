// Reads what gemm-bench --csv wrote.
#pragma once

#include <string>
#include <vector>

#include "tuner/bench.h"

namespace gemm {

// The rows of a CSV file with the columns that bench_report.h lists. Files of older versions, without lda, ldb, ldc,
// max_scaled_error, reduction or relayout, are read as well. Failure: the reason with file, line and column.
Result<std::vector<BenchRow>> read_bench_csv(const std::string& path);

}  // namespace gemm
