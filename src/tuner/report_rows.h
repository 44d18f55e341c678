// What the HTML report draws and lists: tuned points and benchmarked shapes in one form, with every unusable number left
// out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/bench.h"

namespace gemm {

struct ReportRow {
  std::string group;  // "TN", "TN batch"; the class of a benchmarked shape
  Problem problem;
  std::string winner;        // the kernel that serves it, or "cublas"
  std::string server;        // "tile", "stream", "batch", "cublas", or "unknown": names that style sheets may use
  std::string launch;        // "split 4 ticket/relayout ab", "stream_k", "rule exact"; may be empty
  std::optional<double> us;  // of the winner
  std::optional<double> cublas_us, cublaslt_us, floor_us;
  std::optional<double> error;   // of an own kernel, as a share of its bound
  std::optional<double> own_us;  // of the best own kernel, also where cuBLAS wins

  std::optional<double> best_us() const;      // the faster baseline
  std::optional<double> over_cublas() const;  // cuBLAS's time / the winner's
  std::optional<double> over_best() const;    // the faster baseline's time / the winner's
  std::optional<double> gflops() const;       // 10⁹ operations in a second, of the winner
  double intensity() const;                   // operations for each byte of A, B and C
  std::string described() const;              // all of it in a line
};

// `value` where it is finite and above zero.
std::optional<double> usable(std::optional<double> value);

std::vector<ReportRow> report_rows(const Table& table);
std::vector<ReportRow> report_rows(const std::vector<BenchRow>& rows);

// Ceilings of the GPU that the rows were measured on.
struct Roofs {
  std::optional<double> gflops;        // FP32 multiply-adds
  std::optional<double> gbytes_per_s;  // device memory
};

// What `floor_us` was made from, max(flops / peak, bytes / bandwidth): each ceiling where some row is bound by it.
Roofs roofs_of(const std::vector<ReportRow>& rows);

}  // namespace gemm
