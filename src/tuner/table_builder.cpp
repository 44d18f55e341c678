#include "tuner/table_builder.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "kernels/kernel_spec.h"
#include "tuner/model_fit.h"
#include "tuner/statistics.h"
#include "tuner/trial_log.h"

namespace gemm {
namespace {

// From this share of an older model's random problems on, a new one replaces it: half the problems cost choices 0.3 %
// (docs/performance.md, "What a longer calibration is worth"), and the older model knows nothing of kernels that are new in
// the portfolio (19 of 64 in one run).
constexpr double kEnoughProblems = 0.5;

std::map<std::string, std::string> method_of(const DeviceInfo& device) {
  if (device.emulated)
    return {{"version", kMethodVersion}, {"time", "modelled: max(arithmetic, memory) + launch, docs/tuning.md"}};
  return {
      {"version", kMethodVersion},
      {"time", "GPU events; short kernels repeated in a CUDA graph; winners, ties and baselines interleaved round by round"},
      {"rotation", "operand sets covering 64 MiB, at most 16 sets"},
      {"data", "uniform random in [-1, 1), alpha 1, beta 0"},
      {"verification", "FP64 reference on the problem and on edge shapes; |error| <= eps (4 + 2 sqrt(k)) |A||B|"},
      {"ties", "0.5 % or twice the standard error; fewer splits, then the smaller kernel id"},
      {"cublaslt", "best of 16 heuristics, 136 MiB workspace, CUBLAS_COMPUTE_32F"}};
}

TablePoint to_table_point(const PointResult& result, const PointOption* option) {
  TablePoint point;
  point.problem = result.problem;
  point.cublas_us = result.cublas_us;
  point.cublaslt_best_us = result.cublaslt_best_us;
  if (option == nullptr) {
    point.use_cublas = true;
    return point;
  }
  point.kernel = config_id(option->choice.config);
  point.split_k = option->choice.split_k;
  point.reduction = option->choice.reduction;
  point.relayout = option->choice.relayout;
  point.time_us = option->time_us;
  point.tflops = result.problem.flops() / option->time_us.median / 1e6;
  point.max_scaled_error = option->max_scaled_error;
  point.use_cublas = result.cublas_us && *result.cublas_us * (1 + tie_margin(option->time_us)) < option->time_us.median;
  if (option == &result.options.front()) point.ties = result.ties;
  return point;
}

PortfolioKernel to_portfolio_kernel(const PointOption& option) {
  const KernelConfig& config = option.choice.config;
  return {config_id(config), config, option.registers, option.spill_bytes, option.shared_bytes, config.threads(), {}, {}};
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

std::vector<PointResult> with_older_points(std::vector<PointResult> points, const Table& older) {
  const size_t fresh = points.size();
  for (const TablePoint& point : older.points) {
    const auto same = [&](const PointResult& result) { return result.problem == point.problem; };
    if (std::any_of(points.begin(), points.begin() + static_cast<std::ptrdiff_t>(fresh), same)) continue;
    if (std::optional<PointResult> result = from_table_point(older, point)) points.push_back(std::move(*result));
  }
  return points;
}

Table make_table(const DeviceInfo& device, const std::map<std::string, std::string>& environment,
                 const std::string& command_line, const std::vector<PointResult>& points,
                 const std::set<std::string>& portfolio, const std::vector<PointResult>& survey) {
  Table table;
  table.device = device;
  table.provenance = device.provenance();
  table.environment = environment;
  table.environment["driver"] = device.driver;
  table.environment["cuda_runtime"] = device.cuda_runtime;
  table.environment["host"] = host_name();
  table.environment["gemm_version"] = GEMM_VERSION;
  table.environment["command"] = command_line;
  table.environment["date"] = utc_timestamp();
  table.method = method_of(device);
  std::map<std::string, PortfolioKernel> kernels;
  for (const PointResult& result : points) {
    const PointOption* option = served_by(result, portfolio);
    if (option == nullptr && !result.cublas_us) continue;  // nothing that was measured could serve it
    table.points.push_back(to_table_point(result, option));
    if (option != nullptr) kernels.emplace(config_id(option->choice.config), to_portfolio_kernel(*option));
  }
  for (const PointResult& result : survey)
    for (const PointOption& option : result.options)
      if (const std::string id = config_id(option.choice.config); portfolio.count(id) != 0)
        kernels.emplace(id, to_portfolio_kernel(option));
  for (auto& [id, kernel] : kernels) table.portfolio.push_back(std::move(kernel));
  return table;
}

void fit_table(Table& table, const CalibrationResults& calibration, const std::vector<PointResult>& points) {
  std::vector<PointResult> random = calibration.survey;
  random.insert(random.end(), calibration.favourites.begin(), calibration.favourites.end());
  fit_model(table, random, points);
}

void certify_table(Table& table, const CalibrationResults& calibration) {
  if (!calibration.certificate.empty()) table.certificate = make_certificate(table, calibration.certificate);
  table.portfolio_curve = portfolio_curve(table, calibration.survey, calibration.certificate);
}

bool keep_older_calibration(Table& table, const Table& older) {
  if (!older.learned_model) return false;
  if (table.learned_model && table.learned_model->problems >= kEnoughProblems * older.learned_model->problems) return false;
  const auto known = std::ranges::count_if(table.portfolio, [&](const PortfolioKernel& kernel) {
    const PortfolioKernel* before = older.find_kernel(kernel.id);
    return before != nullptr && !before->traits.empty();
  });
  if (table.learned_model && 2 * static_cast<size_t>(known) < table.portfolio.size()) return false;
  table.learned_model = older.learned_model;
  for (PortfolioKernel& kernel : table.portfolio) {
    const PortfolioKernel* before = older.find_kernel(kernel.id);
    kernel.traits = before ? before->traits : std::vector<FirstLayer>{};
  }
  // They speak of the portfolio as a whole.
  const auto same_id = [](const PortfolioKernel& a, const PortfolioKernel& b) { return a.id == b.id; };
  const bool same = std::ranges::equal(table.portfolio, older.portfolio, same_id);
  table.certificate = same ? older.certificate : std::nullopt;
  table.portfolio_curve = same ? older.portfolio_curve : std::vector<double>{};
  return true;
}

}  // namespace gemm
