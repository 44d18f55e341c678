#include "tuner/inspect_report.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <vector>

#include "dispatch/explain.h"
#include "dispatch/selector.h"
#include "tuner/candidates.h"
#include "tuner/formatted.h"

namespace gemm {
namespace {

constexpr int kRegisterUnit = 256;              // registers are given to warps in units of this
constexpr int kRuntimeBytes = 1024;             // shared memory that the runtime keeps per resident block
constexpr int64_t kLargestLength = 2147483647;  // what cublasSgemm takes

// Resident blocks that the hardware can manage, whatever they need.
int most_blocks_per_sm(int compute_capability) {
  switch (compute_capability) {
    case 75:
    case 86:
    case 87: return 16;
    case 89: return 24;
    default: return 32;
  }
}

double best_baseline(const TablePoint& point) {
  const double cublas = point.cublas_us.value_or(0), lt = point.cublaslt_best_us.value_or(0);
  return cublas > 0 && lt > 0 ? std::min(cublas, lt) : std::max(cublas, lt);
}

std::string optional_time(const std::optional<double>& us) { return us ? formatted("%.2f", *us) : "-"; }

int64_t read_length(const std::string& field, const char* name) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size() || value < 1 || value > kLargestLength)
    throw Error(std::string(name) + " is '" + field + "', not a number from 1 to " + std::to_string(kLargestLength));
  return value;
}

Problem read_problem(const std::vector<std::string>& fields) {
  if (fields.size() < 3 || fields.size() > 5)
    throw Error(std::to_string(fields.size()) + " fields instead of m,n,k[,ops[,batch]]");
  Op op_a = Op::N, op_b = Op::N;
  if (fields.size() > 3 && (fields[3].size() != 2 || !op_from_char(fields[3][0], op_a) || !op_from_char(fields[3][1], op_b)))
    throw Error("ops are '" + fields[3] + "', not two of N and T");
  const int64_t batch = fields.size() > 4 ? read_length(fields[4], "batch") : 1;
  return packed_problem(read_length(fields[0], "m"), read_length(fields[1], "n"), read_length(fields[2], "k"), op_a, op_b,
                        batch);
}

std::string point_line(const TablePoint& point) {
  const Problem& p = point.problem;
  std::string text =
      formatted("%8lld %8lld %8lld %3s %6lld ", static_cast<long long>(p.m), static_cast<long long>(p.n),
                static_cast<long long>(p.k), ops_name(p.op_a, p.op_b).c_str(), static_cast<long long>(p.batch));
  const double best = best_baseline(point), own = point.time_us.median;
  text += point.kernel.empty() ? formatted("%10s %8s ", "-", "-") : formatted("%10.2f %8.2f ", own, point.tflops);
  text += formatted("%10s %10s %7s  ", optional_time(point.cublas_us).c_str(), optional_time(point.cublaslt_best_us).c_str(),
                    best > 0 && own > 0 ? formatted("%.3f", best / own).c_str() : "-");
  text += point.use_cublas ? "cublas" : point.kernel;
  if (!point.use_cublas && point.split_k > 1)
    text += "/split " + std::to_string(point.split_k) + " " + to_string(point.reduction);
  if (!point.use_cublas && point.relayout != Relayout::none) text += std::string("/relayout ") + to_string(point.relayout);
  if (!point.ties.empty()) text += formatted("  (%zu ties)", point.ties.size());
  return text + "\n";
}

}  // namespace

double occupancy(const PortfolioKernel& kernel, const DeviceLimits& limits) {
  if (kernel.registers <= 0 || kernel.threads <= 0 || limits.threads_per_sm <= 0) return 0;
  const int warps = (kernel.threads + 31) / 32;
  const int by_shared = limits.shared_bytes_per_sm / (kernel.shared_bytes + kRuntimeBytes);
  const int by_threads = limits.threads_per_sm / (warps * 32);
  const int by_registers = limits.registers_per_sm / (round_up(kernel.registers * 32, kRegisterUnit) * warps);
  const int blocks = std::min({by_shared, by_threads, by_registers, most_blocks_per_sm(limits.compute_capability)});
  return static_cast<double>(blocks * warps * 32) / limits.threads_per_sm;
}

std::string inspect_header(const Table& table) {
  const DeviceInfo& device = table.device;
  std::string text = "device      " + device.name +
                     formatted(" (sm_%d, %d multiprocessors, %lld MiB, %d MHz)\n", device.limits.compute_capability,
                               device.sm_count, static_cast<long long>(device.memory_bytes >> 20), device.sm_clock_mhz);
  text += "provenance  " + table.provenance +
          (table.provenance == "modelled" ? ": the times are a model's, not a GPU's\n" : "\n");
  for (const auto& [key, value] : table.environment) text += formatted("%-11s %s\n", key.c_str(), value.c_str());
  for (const auto& [key, value] : table.method) text += formatted("method      %s: %s\n", key.c_str(), value.c_str());
  return text + formatted("%zu points, %zu kernels\n", table.points.size(), table.portfolio.size());
}

std::string inspect_portfolio(const Table& table) {
  std::string text =
      formatted("%6s %6s %8s %7s %6s %7s  %s\n", "points", "regs", "shared", "threads", "occup.", "spills", "kernel");
  for (const PortfolioKernel& kernel : table.portfolio) {
    const auto users = std::count_if(table.points.begin(), table.points.end(), [&](const TablePoint& point) {
      return !point.use_cublas && point.kernel == kernel.id;
    });
    const double share = occupancy(kernel, table.device.limits);
    text += formatted("%6td %6s %8d %7d %6s %7d  ", users,
                      kernel.registers > 0 ? std::to_string(kernel.registers).c_str() : "-", kernel.shared_bytes,
                      kernel.threads, share > 0 ? formatted("%.0f %%", 100 * share).c_str() : "-", kernel.spill_bytes);
    text += kernel.id + "\n";
  }
  return text;
}

std::string certificate_text(const Certificate& certificate) {
  std::string text;
  const auto add = [&](const char* name, const std::optional<CertificateGroup>& group) {
    if (!group) return;
    text +=
        formatted("selector, %d untuned problems (%s): %.3f of the portfolio's best time, 5th percentile %.3f, worst %.3f (",
                  group->problems, name, group->of_best, group->of_best_p5, group->worst) +
        to_string(group->worst_problem) + ")";
    if (group->over_cublas)
      text += formatted(", %.3f times cuBLAS, which it chose %d times", *group->over_cublas, group->cublas_chosen);
    if (group->of_best_or_cublas) text += formatted("; %.3f of the best with cuBLAS", *group->of_best_or_cublas);
    text += "\n";
  };
  add("box", certificate.box);
  add("outside", certificate.outside);
  return text;
}

std::string inspect_selector(const Table& table) {
  std::string text = table.certificate ? certificate_text(*table.certificate) : "selector: no certificate\n";
  if (table.portfolio_curve.empty()) return text;
  text += "share of the whole portfolio's speed that its first kernels reach, in greedy order:\n";
  for (size_t i = 0; i < table.portfolio_curve.size(); ++i)
    if (i < 4 || (i + 1) % 4 == 0 || i + 1 == table.portfolio_curve.size())
      text += formatted("%6zu kernels  %.3f\n", i + 1, table.portfolio_curve[i]);
  return text;
}

std::string inspect_points(const Table& table) {
  std::string text = formatted("%8s %8s %8s %3s %6s %10s %8s %10s %10s %7s  %s\n", "m", "n", "k", "ops", "batch", "time_us",
                               "TFLOP/s", "cublas_us", "lt_us", "xbest", "use");
  for (const TablePoint& point : table.points) text += point_line(point);
  return text;
}

std::string inspect_shape(const Table& table, const std::string& path, const Problem& problem) {
  const Decision decision = choose(&table, problem, table.device, kWorkspaceBytes);
  return explain(problem, decision, describe_source(table, path, table.device));
}

Result<Problem> problem_from_text(const std::string& text) {
  std::vector<std::string> fields;
  std::istringstream stream(text);
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  if (!text.empty() && text.back() == ',') fields.emplace_back();
  try {
    return read_problem(fields);
  } catch (const Error& error) {
    return Failure{"shape '" + text + "': " + error.what()};
  }
}

}  // namespace gemm
