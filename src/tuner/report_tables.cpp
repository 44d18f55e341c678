#include "tuner/report_tables.h"

#include <algorithm>
#include <map>

#include "kernels/kernel_spec.h"
#include "tuner/formatted.h"
#include "tuner/html_text.h"
#include "tuner/inspect_report.h"
#include "tuner/statistics.h"

namespace gemm {
namespace {

constexpr double kBarPx = 60;  // of the kernel that wins most

std::string code(const std::string& text) { return "<code>" + escaped(text) + "</code>"; }

std::string anchor_of(size_t kernel) { return "kernel" + std::to_string(kernel); }

// Markup for a winner, with a link where the portfolio has it.
class Winners {
 public:
  explicit Winners(const Table& table) {
    for (size_t i = 0; i < table.portfolio.size(); ++i) places_.emplace(table.portfolio[i].id, i);
  }
  std::string operator()(const std::string& winner) const {
    const auto found = places_.find(winner);
    return found == places_.end() ? code(winner) : "<a href=\"#" + anchor_of(found->second) + "\">" + code(winner) + "</a>";
  }

 private:
  std::map<std::string, size_t> places_;
};

std::map<std::string, int> wins_of(const Table& table) {
  std::map<std::string, int> wins;
  for (const TablePoint& point : table.points)
    if (!point.use_cublas) ++wins[point.kernel];
  return wins;
}

std::string or_dash(int value) { return value > 0 ? std::to_string(value) : "–"; }

std::vector<HtmlTable::Column> portfolio_columns() {
  std::vector<HtmlTable::Column> columns = {{""},
                                            {"points", true, "points that it wins"},
                                            {"kernel"},
                                            {"registers", true, "per thread"},
                                            {"spills", true, "bytes of local memory per thread"},
                                            {"shared", true, "bytes of shared memory per block"},
                                            {"threads", true, "per block"},
                                            {"occupancy", true, "% of a multiprocessor's threads that are resident at most"},
                                            {"family"}};
  for (const char* name : {"BM", "BN", "BK", "WM", "WN", "WNITER", "TM", "TN", "stages", "slices", "min_blocks"})
    columns.push_back({name, true});
  columns.insert(columns.end(), {{"load"}, {"order"}, {"acc_init"}});
  return columns;
}

// In the order of portfolio_columns.
std::vector<std::string> kernel_cells(const PortfolioKernel& kernel, int wins, int most_wins, const DeviceLimits& limits) {
  const KernelConfig& c = kernel.config;
  const double share = occupancy(kernel, limits);
  const std::string bar =
      formatted("<i class=\"share\" style=\"width:%.0fpx\"></i>", kBarPx * wins / std::max(1, most_wins));
  std::vector<std::string> cells = {bar,
                                    std::to_string(wins),
                                    code(kernel.id),
                                    or_dash(kernel.registers),
                                    std::to_string(kernel.spill_bytes),
                                    std::to_string(kernel.shared_bytes),
                                    std::to_string(kernel.threads),
                                    share > 0 ? formatted("%.0f", 100 * share) : "–",
                                    to_string(c.family)};
  for (const int value : {c.BM, c.BN, c.BK, c.WM, c.WN, c.WNITER, c.TM, c.TN, c.stages, c.slices, c.min_blocks})
    cells.push_back(std::to_string(value));
  cells.insert(cells.end(), {to_string(c.load), to_string(c.order), to_string(c.acc_init)});
  return cells;
}

using Values = std::vector<std::string>;

std::vector<std::pair<std::string, Values>> certificate_lines(const std::vector<CertificateGroup>& groups) {
  std::vector<std::pair<std::string, Values>> lines = {{"problems", {}},
                                                       {"best of the portfolio ÷ choice, geometric mean", {}},
                                                       {"… 5th percentile", {}},
                                                       {"… worst", {}},
                                                       {"worst problem", {}},
                                                       {"the same with cuBLAS among the best", {}},
                                                       {"cuBLAS's time ÷ choice's, geometric mean", {}},
                                                       {"cuBLAS was the choice", {}}};
  for (const CertificateGroup& group : groups) {
    const Values values = {std::to_string(group.problems),          number_text(group.of_best, 3),
                           number_text(group.of_best_p5, 3),        number_text(group.worst, 3),
                           escaped(to_string(group.worst_problem)), number_text(group.of_best_or_cublas, 3),
                           number_text(group.over_cublas, 3),       std::to_string(group.cublas_chosen)};
    for (size_t i = 0; i < lines.size(); ++i) lines[i].second.push_back(values[i]);
  }
  return lines;
}

// m, n, k, ops and batch.
std::vector<std::string> problem_cells(const Problem& p) {
  return {std::to_string(p.m), std::to_string(p.n), std::to_string(p.k), ops_name(p.op_a, p.op_b), std::to_string(p.batch)};
}

const std::vector<HtmlTable::Column> kProblemColumns = {{"m", true}, {"n", true}, {"k", true}, {"ops"}, {"batch", true}};

// What both lists of rows have after their problem and winner.
const std::vector<HtmlTable::Column> kTimeColumns = {
    {"us", true, "median time of the winner in microseconds"},
    {"gflops", true, "10⁹ floating-point operations per second of the winner"},
    {"cublas_us", true, "cublasSgemm, microseconds"},
    {"lt_us", true, "best of cuBLASLt's heuristics, microseconds"},
    {"xcublas", true, "cublasSgemm's time over the winner's"},
    {"xbest", true, "the better baseline's time over the winner's"},
    {"error", true, "worst error against FP64 as a share of its bound"}};

void append_times(const ReportRow& row, std::vector<std::string>& cells) {
  cells.insert(cells.end(), {number_text(row.us, 2), number_text(row.gflops(), 1), number_text(row.cublas_us, 2),
                             number_text(row.cublaslt_us, 2), number_text(row.over_cublas(), 3),
                             number_text(row.over_best(), 3), number_text(row.error, 3)});
}

std::vector<HtmlTable::Column> joined(const std::vector<std::vector<HtmlTable::Column>>& parts) {
  std::vector<HtmlTable::Column> columns;
  for (const auto& part : parts) columns.insert(columns.end(), part.begin(), part.end());
  return columns;
}

struct Means {
  int rows = 0;
  GeometricMean best, cublas, floor;
  void add(const ReportRow& row) {
    ++rows;
    best.add(row.over_best());
    cublas.add(row.over_cublas());
    if (row.us && row.floor_us) floor.add(*row.us / *row.floor_us);
  }
  std::vector<std::string> cells(const std::string& name) const {
    return {escaped(name), std::to_string(rows), number_text(best.value(), 3), number_text(cublas.value(), 3),
            number_text(floor.value(), 3)};
  }
};

}  // namespace

std::string portfolio_table(const Table& table) {
  HtmlTable html("portfolio-table", portfolio_columns());
  const std::map<std::string, int> wins = wins_of(table);
  const auto wins_by = [&](const PortfolioKernel& kernel) {
    const auto found = wins.find(kernel.id);
    return found == wins.end() ? 0 : found->second;
  };
  std::vector<size_t> order(table.portfolio.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return wins_by(table.portfolio[a]) > wins_by(table.portfolio[b]); });
  const int most = order.empty() ? 0 : wins_by(table.portfolio[order.front()]);
  for (const size_t i : order) {
    const PortfolioKernel& kernel = table.portfolio[i];
    html.add_row(kernel_cells(kernel, wins_by(kernel), most, table.device.limits), anchor_of(i));
  }
  return html.plain();
}

std::string certificate_table(const Certificate& certificate) {
  std::vector<HtmlTable::Column> columns = {{"untuned problems"}};
  std::vector<CertificateGroup> groups;
  const auto add = [&](const char* name, const char* title, const std::optional<CertificateGroup>& group) {
    if (!group) return;
    columns.push_back({name, true, title});
    groups.push_back(*group);
  };
  add("box", "m, n and k from 16 to 9000, one matrix, all op pairs", certificate.box);
  add("outside", "a side of 1 to 16, deep or shallow k, tall or wide, batches", certificate.outside);
  HtmlTable html("certificate-table", columns);
  for (const auto& [name, values] : certificate_lines(groups)) {
    std::vector<std::string> cells = {name};
    cells.insert(cells.end(), values.begin(), values.end());
    html.add_row(cells);
  }
  return html.plain();
}

std::string points_table(const Table& table, const std::vector<ReportRow>& rows) {
  HtmlTable html("points-table", joined({kProblemColumns, kTimeColumns, {{"winner"}, {"launch"}}}));
  const Winners winner(table);
  for (const ReportRow& row : rows) {
    std::vector<std::string> cells = problem_cells(row.problem);
    append_times(row, cells);
    cells.push_back(winner(row.winner));
    cells.push_back(escaped(row.launch));
    html.add_row(cells);
  }
  return html.filtered();
}

std::string bench_table(const Table& table, const std::vector<ReportRow>& rows) {
  const std::vector<HtmlTable::Column> floors = {
      {"floor_us", true, "the larger of arithmetic and memory at the measured peaks, microseconds"},
      {"xfloor", true, "the winner's time over the floor"}};
  HtmlTable html("bench-table",
                 joined({{{"class"}}, kProblemColumns, kTimeColumns, floors, {{"winner"}, {"launch"}, {"ld"}}}));
  const Winners winner(table);
  for (const ReportRow& row : rows) {
    const Problem& p = row.problem;
    std::vector<std::string> cells = {escaped(row.group)};
    for (const std::string& cell : problem_cells(p)) cells.push_back(cell);
    append_times(row, cells);
    cells.push_back(number_text(row.floor_us, 2));
    cells.push_back(row.us && row.floor_us ? number_text(*row.us / *row.floor_us, 2) : "–");
    cells.push_back(winner(row.winner));
    cells.push_back(escaped(row.launch));
    cells.push_back(is_packed(p) ? "packed"
                                 : formatted("%lld, %lld, %lld", static_cast<long long>(p.lda),
                                             static_cast<long long>(p.ldb), static_cast<long long>(p.ldc)));
    html.add_row(cells);
  }
  return html.filtered();
}

std::string means_table(const std::vector<ReportRow>& rows) {
  HtmlTable html("means-table", {{"class"},
                                 {"shapes", true},
                                 {"best ÷ ours", true, "the better baseline's time over ours, geometric mean"},
                                 {"cuBLAS ÷ ours", true, "cublasSgemm's time over ours, geometric mean"},
                                 {"ours ÷ floor", true, "1 is the ceiling of arithmetic or memory"}});
  std::vector<std::string> names;
  std::map<std::string, Means> means;
  Means all;
  for (const ReportRow& row : rows) {
    if (means.find(row.group) == means.end()) names.push_back(row.group);
    means[row.group].add(row);
    all.add(row);
  }
  for (const std::string& name : names) html.add_row(means[name].cells(name));
  html.add_row(all.cells("all"));
  return html.plain();
}

}  // namespace gemm
