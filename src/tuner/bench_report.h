// What gemm-bench prints and writes.
#pragma once

#include <string>
#include <vector>

#include "tuner/bench.h"

namespace gemm {

// Text lines for people.
std::string bench_table_header();
std::string bench_table_row(const BenchRow& row);

// Geometric means per class (in order of appearance) and over all, the worst shape, and who served the shapes.
std::string bench_summary(const std::vector<BenchRow>& rows);

// CSV lines with the columns
// class,m,n,k,transa,transb,batch,lda,ldb,ldc,ours_us,cublas_us,cublaslt_best_us,floor_us,kernel,split_k,
// rule,max_scaled_error. Fields without a value are empty; a row without times has no CSV line (an empty string).
std::string bench_csv_header();
std::string bench_csv_row(const BenchRow& row);

}  // namespace gemm
