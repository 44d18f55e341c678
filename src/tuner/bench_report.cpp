#include "tuner/bench_report.h"

#include <algorithm>

#include "tuner/csv_reader.h"
#include "tuner/formatted.h"
#include "tuner/statistics.h"

namespace gemm {
namespace {

std::string text_of(const std::optional<double>& value, int digits, const char* otherwise) {
  return value ? formatted("%.*f", digits, *value) : otherwise;
}

std::string class_of(const BenchRow& row) { return row.shape.shape_class.empty() ? "-" : row.shape.shape_class; }

// " ld 513,513,512" where a problem is not packed, so that nobody takes its row for the packed one's.
std::string ld_mark(const Problem& p) {
  if (is_packed(p)) return {};
  return "  ld " + std::to_string(p.lda) + "," + std::to_string(p.ldb) + "," + std::to_string(p.ldc);
}

// The three means over the rows of a class, or over all rows where `shape_class` is null.
std::string mean_line(const std::vector<BenchRow>& rows, const std::string* shape_class) {
  GeometricMean best, cublas, floor;
  int shapes = 0;
  for (const BenchRow& row : rows) {
    if (!row.failure.empty() || (shape_class && class_of(row) != *shape_class)) continue;
    ++shapes;
    best.add(row.speedup());
    if (row.cublas_us) cublas.add(*row.cublas_us / row.ours_us);
    floor.add(row.ours_us / row.floor_us);
  }
  return formatted("%-12s %6d %10s %12s %12s\n", shape_class ? shape_class->c_str() : "all", shapes,
                   text_of(best.value(), 3, "-").c_str(), text_of(cublas.value(), 3, "-").c_str(),
                   text_of(floor.value(), 3, "-").c_str());
}

std::vector<std::string> classes_of(const std::vector<BenchRow>& rows) {
  std::vector<std::string> classes;
  for (const BenchRow& row : rows)
    if (std::find(classes.begin(), classes.end(), class_of(row)) == classes.end()) classes.push_back(class_of(row));
  return classes;
}

std::string worst_line(const std::vector<BenchRow>& rows) {
  const BenchRow* worst = nullptr;
  for (const BenchRow& row : rows)
    if (row.failure.empty() && row.speedup() && (!worst || *row.speedup() < *worst->speedup())) worst = &row;
  if (!worst) return {};
  return formatted("worst shape: %s at %.3f of the best baseline (%s)\n", to_string(worst->shape.problem).c_str(),
                   *worst->speedup(), worst->kernel().c_str());
}

std::string served_lines(const std::vector<BenchRow>& rows) {
  size_t timed = 0, own = 0, wrong = 0;
  for (const BenchRow& row : rows) {
    timed += row.failure.empty() ? 1 : 0;
    own += row.failure.empty() && !row.use_cublas ? 1 : 0;
    wrong += row.wrong ? 1 : 0;
  }
  std::string text;
  if (timed > 0)
    text = formatted("served by own kernels: %zu of %zu shapes (%.0f %%)\n", own, timed,
                     100.0 * static_cast<double>(own) / static_cast<double>(timed));
  if (timed < rows.size())
    text += formatted("without times: %zu shapes, %zu of them because of a wrong result\n", rows.size() - timed, wrong);
  return text;
}

}  // namespace

std::string bench_table_header() {
  return formatted("%-12s %8s %8s %8s %3s %6s %10s %10s %10s %10s %6s  %s\n", "class", "m", "n", "k", "ops", "batch",
                   "ours_us", "cublas_us", "lt_us", "floor_us", "xbest", "kernel");
}

std::string bench_table_row(const BenchRow& row) {
  const Problem& p = row.shape.problem;
  std::string text = formatted("%-12s %8lld %8lld %8lld %3s %6lld ", class_of(row).c_str(), static_cast<long long>(p.m),
                               static_cast<long long>(p.n), static_cast<long long>(p.k), ops_name(p.op_a, p.op_b).c_str(),
                               static_cast<long long>(p.batch));
  if (!row.failure.empty()) return text + "skipped: " + row.failure + ld_mark(p) + "\n";
  text += formatted("%10.2f %10s %10s %10.2f %6s  ", row.ours_us, text_of(row.cublas_us, 2, "-").c_str(),
                    text_of(row.cublaslt_best_us, 2, "-").c_str(), row.floor_us, text_of(row.speedup(), 3, "-").c_str());
  return text + (row.use_cublas ? "cublas" : to_string(row.choice)) + " (" + to_string(row.rule) + ")" + ld_mark(p) + "\n";
}

std::string bench_summary(const std::vector<BenchRow>& rows) {
  std::string text = "geometric means\n" +
                     formatted("%-12s %6s %10s %12s %12s\n", "class", "shapes", "best/ours", "cublas/ours", "ours/floor");
  for (const std::string& shape_class : classes_of(rows)) text += mean_line(rows, &shape_class);
  return text + mean_line(rows, nullptr) + worst_line(rows) + served_lines(rows);
}

std::string bench_csv_header() {
  return "class,m,n,k,transa,transb,batch,lda,ldb,ldc,ours_us,cublas_us,cublaslt_best_us,floor_us,kernel,split_k,rule,"
         "max_scaled_error,reduction,relayout\n";
}

std::string bench_csv_row(const BenchRow& row) {
  if (!row.failure.empty()) return {};
  const Problem& p = row.shape.problem;
  return csv_field(row.shape.shape_class) + "," + std::to_string(p.m) + "," + std::to_string(p.n) + "," +
         std::to_string(p.k) + "," + to_char(p.op_a) + "," + to_char(p.op_b) + "," + std::to_string(p.batch) + "," +
         std::to_string(p.lda) + "," + std::to_string(p.ldb) + "," + std::to_string(p.ldc) + "," +
         formatted("%.3f", row.ours_us) + "," + text_of(row.cublas_us, 3, "") + "," + text_of(row.cublaslt_best_us, 3, "") +
         "," + formatted("%.3f", row.floor_us) + "," + row.kernel() + "," +
         std::to_string(row.use_cublas ? 1 : row.choice.split_k) + "," + to_string(row.rule) + "," +
         text_of(row.max_scaled_error, 5, "") + "," + (row.use_cublas ? "" : to_string(row.choice.reduction)) + "," +
         (row.use_cublas ? "" : to_string(row.choice.relayout)) + "\n";
}

}  // namespace gemm
