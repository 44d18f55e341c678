#include "tuner/bench_csv.h"

#include <charconv>
#include <cmath>

#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

constexpr int kMostSplit = 65535;  // grid.y

// A finite number above zero (from zero where `zero_allowed`); nothing where the column is missing or its field is empty.
std::optional<double> number(const CsvReader& csv, const std::string& column, bool zero_allowed = false) {
  if (!csv.has(column) || csv.text(column).empty()) return std::nullopt;
  const std::string& text = csv.text(column);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool in_range = std::isfinite(value) && (value > 0 || (value == 0 && zero_allowed));
  if (error != std::errc() || end != text.data() + text.size() || !in_range)
    csv.fail("column '" + column + "' is '" + text + "', but must be a number " + (zero_allowed ? "from 0" : "above 0"));
  return value;
}

Rule read_rule(const CsvReader& csv) {
  for (const Rule rule : {Rule::exact, Rule::predicted, Rule::nearest, Rule::fallback, Rule::cublas, Rule::reproducible})
    if (csv.text("rule") == to_string(rule)) return rule;
  csv.fail("column 'rule' is '" + csv.text("rule") + "', which is no rule of dispatch");
}

// Older files lack the column.
template <class Enum>
void read_word(const CsvReader& csv, const std::string& column, Enum& value) {
  if (csv.has(column) && !from_string(csv.text(column), value))
    csv.fail("column '" + column + "' is '" + csv.text(column) + "', which is none of its words");
}

void read_kernel(const CsvReader& csv, BenchRow& row) {
  row.use_cublas = csv.text("kernel") == "cublas";
  if (row.use_cublas) return;
  const std::optional<KernelConfig> config = config_from_id(csv.text("kernel"));
  if (!config) csv.fail("column 'kernel' is '" + csv.text("kernel") + "', but must be cublas or a kernel's id");
  row.choice.config = *config;
  row.choice.split_k = static_cast<int>(csv.whole("split_k", 1, kMostSplit));
  read_word(csv, "reduction", row.choice.reduction);
  read_word(csv, "relayout", row.choice.relayout);
}

BenchRow read_row(const CsvReader& csv) {
  BenchRow row;
  row.shape = read_shape(csv);
  row.rule = read_rule(csv);
  read_kernel(csv, row);
  const std::optional<double> ours_us = number(csv, "ours_us");
  if (!ours_us) csv.fail("column 'ours_us' is empty");
  row.ours_us = *ours_us;
  row.cublas_us = number(csv, "cublas_us");
  row.cublaslt_best_us = number(csv, "cublaslt_best_us");
  row.floor_us = number(csv, "floor_us", true).value_or(0);  // 0.000 where a tiny shape's floor is below half a nanosecond
  row.max_scaled_error = number(csv, "max_scaled_error", true);
  return row;
}

}  // namespace

Result<std::vector<BenchRow>> read_bench_csv(const std::string& path) {
  try {
    CsvReader csv(path, "bench CSV", "class,m,n,k,transa,transb,…,ours_us,… as gemm-bench --csv writes them");
    csv.require({"class", "m", "n", "k", "transa", "transb", "batch", "ours_us", "cublas_us", "cublaslt_best_us", "floor_us",
                 "kernel", "split_k", "rule"});
    std::vector<BenchRow> rows;
    while (csv.next()) rows.push_back(read_row(csv));
    if (rows.empty()) return Failure{path + ": no shapes after the header line"};
    return rows;
  } catch (const Error& error) {
    return Failure{error.what()};
  }
}

}  // namespace gemm
