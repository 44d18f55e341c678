#include <algorithm>
#include <array>
#include <cmath>

#include "tuner/formatted.h"
#include "tuner/plot_frame.h"
#include "tuner/report_plots.h"

namespace gemm {
namespace {

constexpr double kWidth = 980, kHeight = 370, kTop = 44, kBottom = 316;
constexpr double kLeft = 62, kPanel = 274, kGap = 38;
constexpr double kOpOffset = 3.2;                  // op pairs of one size lie beside each other
constexpr double kSmallest = 2.8, kLargest = 5.5;  // radius of dots
constexpr double kPerOctave = 0.5;                 // that k adds to the radius

struct KRange {
  int64_t low, end;
  int64_t smallest_dot;  // the k from which dots grow
  const char* name;
};
constexpr std::array<KRange, 3> kRanges = {
    {{1, 512, 16, "k < 512"}, {512, 4096, 512, "512 ≤ k < 4096"}, {4096, INT64_MAX, 4096, "k ≥ 4096"}}};

// Upper ends of the colours' ranges: 5 % is about what one run differs from the next one by, from there in steps of a look.
constexpr std::array<double, 6> kSpeedups = {0.95, 1.05, 1.25, 1.5, 2, 3};

std::string color_of(const std::optional<double>& speedup) {
  if (!speedup) return "unknown";
  return formatted("speed%td", std::upper_bound(kSpeedups.begin(), kSpeedups.end(), *speedup) - kSpeedups.begin());
}

double radius_of(int64_t k, const KRange& range) {
  const double octaves = std::log2(static_cast<double>(k) / static_cast<double>(range.smallest_dot));
  return std::clamp(kSmallest + kPerOctave * octaves, kSmallest, kLargest);
}

void draw_row(SvgPlot& svg, const LogAxis& x, const LogAxis& y, const ReportRow& row, const KRange& range) {
  const Problem& p = row.problem;
  svg.dot(x.at(static_cast<double>(p.n)) + (p.op_b == Op::N ? -kOpOffset : kOpOffset),
          y.at(static_cast<double>(p.m)) + (p.op_a == Op::N ? -kOpOffset : kOpOffset), radius_of(p.k, range),
          "dot " + color_of(row.over_best()), row.described());
}

// The rows of a range, those with a large k first: they have larger dots, and smaller ones must stay visible.
std::vector<const ReportRow*> rows_in(const std::vector<ReportRow>& rows, const KRange& range) {
  std::vector<const ReportRow*> within;
  for (const ReportRow& row : rows)
    if (row.problem.k >= range.low && row.problem.k < range.end) within.push_back(&row);
  std::stable_sort(within.begin(), within.end(),
                   [](const ReportRow* a, const ReportRow* b) { return a->problem.k > b->problem.k; });
  return within;
}

}  // namespace

std::string size_map(const std::vector<ReportRow>& rows, const std::string& mark) {
  if (rows.empty()) return {};
  int64_t most_m = 1, most_n = 1;
  for (const ReportRow& row : rows) most_m = std::max(most_m, row.problem.m), most_n = std::max(most_n, row.problem.n);
  const LogAxis y(1, static_cast<double>(most_m), 4, kBottom, kTop);
  SvgPlot svg(kWidth, kHeight, "Map of tuned sizes, coloured by the speed over the better baseline");
  for (size_t i = 0; i < kRanges.size(); ++i) {
    const double left = kLeft + static_cast<double>(i) * (kPanel + kGap);
    const LogAxis x(1, static_cast<double>(most_n), 4, left, left + kPanel);
    draw_x_axis(svg, x, y, 6, size_tick);
    draw_y_axis(
        svg, x, y, 8, i == 0 ? size_tick : [](double) { return std::string(); });
    const std::vector<const ReportRow*> within = rows_in(rows, kRanges[i]);
    svg.text(left, kTop - 10, Anchor::start, kRanges[i].name + formatted(": %zu", within.size()), "strong");
    for (const ReportRow* row : within) draw_row(svg, x, y, *row, kRanges[i]);
    svg.text(left + kPanel / 2, kHeight - 16, Anchor::middle, "n");
  }
  svg.vertical_text(14, (kTop + kBottom) / 2, "m");
  svg.text(kWidth - 10, 16, Anchor::end, mark, "mark");
  return svg.finished();
}

std::string speedup_legend() {
  std::string out = "<ul class=\"legend\">";
  for (size_t i = 0; i <= kSpeedups.size(); ++i) {
    const std::string range = i == 0                  ? formatted("below %.3g×", kSpeedups.front())
                              : i == kSpeedups.size() ? formatted("from %.3g×", kSpeedups.back())
                                                      : formatted("%.3g to %.3g×", kSpeedups[i - 1], kSpeedups[i]);
    out += formatted("<li><i class=\"speed%zu\"></i>", i) + range + "</li>";
  }
  return out + "<li><i class=\"unknown\"></i>no baseline</li></ul>\n";
}

}  // namespace gemm
