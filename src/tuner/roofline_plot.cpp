#include <algorithm>
#include <limits>

#include "tuner/formatted.h"
#include "tuner/plot_frame.h"
#include "tuner/report_plots.h"

namespace gemm {
namespace {

constexpr double kWidth = 980, kHeight = 470, kLeft = 74, kRight = 960, kTop = 26, kBottom = 420;

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  void include(double value) { low = std::min(low, value), high = std::max(high, value); }
};

std::string tflops_text(double gflops) { return formatted("%.3g TFLOP/s", gflops / 1e3); }

void draw_memory_roof(SvgPlot& svg, const LogAxis& x, const LogAxis& y, double gbytes_per_s, double highest) {
  const double ridge = std::min(highest / gbytes_per_s, x.high());
  // The slope leaves the plot at the bottom where that comes before its left side.
  const double begin = std::max(x.low(), y.low() / gbytes_per_s);
  if (begin >= ridge) return;
  svg.line(x.at(begin), y.at(begin * gbytes_per_s), x.at(ridge), y.at(ridge * gbytes_per_s), "roof");
  const double middle_x = (x.at(begin) + x.at(ridge)) / 2;
  const double middle_y = (y.at(begin * gbytes_per_s) + y.at(ridge * gbytes_per_s)) / 2;
  svg.text(middle_x - 8, middle_y - 6, Anchor::end, formatted("%.3g TB/s, measured copy", gbytes_per_s / 1e3), "strong");
}

void draw_compute_roof(SvgPlot& svg, const LogAxis& x, const LogAxis& y, double gflops, double from, const char* style,
                       const std::string& what) {
  svg.line(x.at(std::max(from, x.low())), y.at(gflops), x.to_px(), y.at(gflops), style);
  svg.text(x.to_px() - 4, y.at(gflops) - 6, Anchor::end, tflops_text(gflops) + ", " + what, "strong");
}

void draw_roofs(SvgPlot& svg, const LogAxis& x, const LogAxis& y, const Roofs& roofs, const std::optional<double>& nominal) {
  const std::optional<double> compute = roofs.gflops ? roofs.gflops : nominal;
  const double highest = compute.value_or(y.high());
  if (roofs.gbytes_per_s) draw_memory_roof(svg, x, y, *roofs.gbytes_per_s, highest);
  const double ridge = roofs.gbytes_per_s ? highest / *roofs.gbytes_per_s : x.low();
  if (roofs.gflops)
    draw_compute_roof(svg, x, y, *compute, ridge, "roof", "measured FFMA peak");
  else if (compute)
    draw_compute_roof(svg, x, y, *compute, ridge, "roof nominal", "nominal: lanes × clock × 2, not measured");
}

}  // namespace

std::string roofline_plot(const std::vector<ReportRow>& rows, const Roofs& roofs,
                          const std::optional<double>& nominal_gflops, const std::string& mark) {
  Range intensity, speed;
  for (const ReportRow& row : rows)
    if (row.gflops()) intensity.include(row.intensity()), speed.include(*row.gflops());
  if (speed.high == 0) return {};
  for (const std::optional<double>& roof : {roofs.gflops, nominal_gflops})
    if (roof) speed.include(*roof);
  const LogAxis x(intensity.low, intensity.high, 10, kLeft, kRight), y(speed.low, speed.high, 10, kBottom, kTop);
  SvgPlot svg(kWidth, kHeight, "Roofline: arithmetic intensity against speed of each winner");
  draw_x_axis(svg, x, y, 10, decimal_tick);
  draw_y_axis(svg, x, y, 8, decimal_tick);
  svg.text((kLeft + kRight) / 2, kHeight - 12, Anchor::middle, "arithmetic intensity, FLOP per byte of A, B and C");
  svg.vertical_text(16, (kTop + kBottom) / 2, "GFLOP/s");
  const DotLook look = dot_look(rows.size());
  for (const ReportRow& row : rows)
    if (row.gflops())
      svg.dot(x.at(row.intensity()), y.at(*row.gflops()), look.radius, look.style + row.server, row.described());
  draw_roofs(svg, x, y, roofs, nominal_gflops);
  svg.text(kRight, 16, Anchor::end, mark, "mark");
  return svg.finished();
}

std::string server_legend() {
  return "<ul class=\"legend\"><li><i class=\"tile\"></i>tile kernel</li><li><i class=\"stream\"></i>stream kernel</li>"
         "<li><i class=\"batch\"></i>batch kernel</li><li><i class=\"cublas\"></i>cuBLAS</li></ul>\n";
}

}  // namespace gemm
