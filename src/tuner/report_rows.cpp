#include "tuner/report_rows.h"

#include <algorithm>
#include <cmath>

#include "kernels/kernel_spec.h"
#include "tuner/html_text.h"

namespace gemm {
namespace {

// A CSV has times to a nanosecond; in a shorter floor that is an error of more than 0.1 %.
constexpr double kShortestFloorUs = 1;
// Floors within this of a ceiling are bound by it.
constexpr double kAtCeiling = 0.998;

std::optional<double> ratio(const std::optional<double>& numerator, const std::optional<double>& denominator) {
  if (!numerator || !denominator) return std::nullopt;
  return usable(*numerator / *denominator);
}

// What to_string adds to a kernel's id.
std::string launch_text(const Choice& choice) {
  const std::string text = to_string(choice), id = config_id(choice.config);
  return text == id ? "" : text.substr(id.size() + 1);
}

ReportRow row_of(const TablePoint& point) {
  ReportRow row;
  row.problem = point.problem;
  row.group = ops_name(point.problem.op_a, point.problem.op_b) + (point.problem.batch > 1 ? " batch" : "");
  row.winner = point.use_cublas ? "cublas" : point.kernel;
  if (!point.use_cublas) row.launch = launch_text(choice_of(point, KernelConfig{}));
  row.cublas_us = usable(point.cublas_us);
  row.cublaslt_us = usable(point.cublaslt_best_us);
  if (!point.kernel.empty()) row.own_us = usable(point.time_us.median);
  row.us = point.use_cublas ? row.cublas_us : row.own_us;
  if (!point.use_cublas) row.error = usable(point.max_scaled_error);
  return row;
}

ReportRow row_of(const BenchRow& bench) {
  ReportRow row;
  row.problem = bench.shape.problem;
  row.group = bench.shape.shape_class.empty() ? "no class" : bench.shape.shape_class;
  row.winner = bench.kernel();
  row.launch = std::string("rule ") + to_string(bench.rule);
  if (const std::string launch = launch_text(bench.choice); !bench.use_cublas && !launch.empty())
    row.launch += ", " + launch;
  row.us = usable(bench.ours_us);
  row.cublas_us = usable(bench.cublas_us);
  row.cublaslt_us = usable(bench.cublaslt_best_us);
  row.floor_us = usable(bench.floor_us);
  if (!bench.use_cublas) row.own_us = row.us;
  row.error = usable(bench.max_scaled_error);
  return row;
}

// An id begins with its family.
std::string server_of(const std::string& winner) {
  if (winner == "cublas") return winner;
  const std::string family = winner.substr(0, winner.find('_'));
  Family known{};
  return from_string(family, known) ? family : "unknown";
}

template <class Entries>
std::vector<ReportRow> rows_from(const Entries& entries) {
  std::vector<ReportRow> rows;
  for (const auto& entry : entries) {
    rows.push_back(row_of(entry));
    rows.back().server = server_of(rows.back().winner);
  }
  return rows;
}

// The ceiling in operations or bytes for each microsecond, `work` over the floor at most. It is read off the longest floor
// that is bound by it, which has the most digits.
template <class Work>
double ceiling(const std::vector<const ReportRow*>& rows, const Work& work) {
  double highest = 0;
  for (const ReportRow* row : rows) highest = std::max(highest, work(row->problem) / *row->floor_us);
  const ReportRow* longest = nullptr;
  for (const ReportRow* row : rows)
    if (work(row->problem) / *row->floor_us >= kAtCeiling * highest && (!longest || *row->floor_us > *longest->floor_us))
      longest = row;
  return longest ? work(longest->problem) / *longest->floor_us : 0;
}

}  // namespace

std::optional<double> usable(std::optional<double> value) {
  if (!value || !std::isfinite(*value) || *value <= 0) return std::nullopt;
  return value;
}

std::optional<double> ReportRow::best_us() const {
  if (!cublas_us) return cublaslt_us;
  return cublaslt_us ? std::min(*cublas_us, *cublaslt_us) : *cublas_us;
}

std::optional<double> ReportRow::over_cublas() const { return ratio(cublas_us, us); }

std::optional<double> ReportRow::over_best() const { return ratio(best_us(), us); }

std::optional<double> ReportRow::gflops() const { return ratio(usable(problem.flops() / 1e3), us); }

double ReportRow::intensity() const { return problem.flops() / problem.bytes(); }

std::string ReportRow::described() const {
  std::string text = to_string(problem) + ": " + number_text(us, 2) + " µs, " + number_text(gflops(), 0) + " GFLOP/s, " +
                     winner + (launch.empty() ? "" : " " + launch);
  if (over_best()) text += ", " + number_text(over_best(), 3) + "× the better baseline";
  if (winner == "cublas" && own_us) text += ", own kernel " + number_text(own_us, 2) + " µs";
  return text;
}

std::vector<ReportRow> report_rows(const Table& table) { return rows_from(table.points); }

std::vector<ReportRow> report_rows(const std::vector<BenchRow>& rows) { return rows_from(rows); }

Roofs roofs_of(const std::vector<ReportRow>& rows) {
  std::vector<const ReportRow*> timed;
  for (const ReportRow& row : rows)
    if (row.floor_us && *row.floor_us >= kShortestFloorUs) timed.push_back(&row);
  const double flops_per_us = ceiling(timed, [](const Problem& p) { return p.flops(); });
  const double bytes_per_us = ceiling(timed, [](const Problem& p) { return p.bytes(); });
  Roofs roofs;
  // Where no row is bound by a ceiling, what was found for it lies on the other one, and the two meet at an outermost row.
  const double ridge = bytes_per_us > 0 ? flops_per_us / bytes_per_us : 0;
  for (const ReportRow* row : timed) {
    if (row->intensity() * kAtCeiling > ridge) roofs.gflops = flops_per_us / 1e3;
    if (row->intensity() < ridge * kAtCeiling) roofs.gbytes_per_s = bytes_per_us / 1e3;
  }
  return roofs;
}

}  // namespace gemm
