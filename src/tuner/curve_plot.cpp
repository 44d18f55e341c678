#include <algorithm>
#include <cmath>

#include "tuner/formatted.h"
#include "tuner/report_plots.h"
#include "tuner/svg_plot.h"

namespace gemm {
namespace {

constexpr double kWidth = 980, kHeight = 330, kLeft = 60, kRight = 960, kTop = 26, kBottom = 280;
constexpr double kRadius = 3;
constexpr size_t kMostTicks = 16;

// Of both axes, which are linear.
struct Scale {
  size_t kernels;
  double lowest;
  double x(size_t kernel) const {
    return kLeft + (kRight - kLeft) * static_cast<double>(kernel) / static_cast<double>(kernels);
  }
  double y(double share) const { return kBottom - (kBottom - kTop) * (share - lowest) / (1 - lowest); }
};

void draw_axes(SvgPlot& svg, const Scale& scale) {
  for (int tenths = static_cast<int>(std::lround(10 * scale.lowest)); tenths <= 10; ++tenths) {
    const double y = scale.y(tenths / 10.0);
    svg.line(kLeft, y, kRight, y, "grid");
    svg.text(kLeft - 7, y + 4, Anchor::end, formatted("%.1f", tenths / 10.0));
  }
  const size_t step = scale.kernels / kMostTicks + 1;
  for (size_t kernel = step; kernel <= scale.kernels; kernel += step)
    svg.text(scale.x(kernel), kBottom + 18, Anchor::middle, std::to_string(kernel));
  svg.text((kLeft + kRight) / 2, kHeight - 8, Anchor::middle, "kernels, in the order in which each adds most");
}

}  // namespace

std::string curve_plot(const std::vector<double>& curve, const std::string& mark) {
  const auto usable_share = [](double share) { return share >= 0 && share <= 1; };
  if (curve.empty() || !std::all_of(curve.begin(), curve.end(), usable_share)) return {};
  const double smallest = *std::min_element(curve.begin(), curve.end());
  const Scale scale{curve.size(), std::min(0.9, std::floor(10 * smallest) / 10)};
  SvgPlot svg(kWidth, kHeight, "Share of the whole portfolio's speed that its first kernels reach");
  draw_axes(svg, scale);
  std::vector<std::pair<double, double>> points;
  for (size_t i = 0; i < curve.size(); ++i) points.emplace_back(scale.x(i + 1), scale.y(curve[i]));
  svg.path(points, "curve");
  for (size_t i = 0; i < curve.size(); ++i)
    svg.dot(points[i].first, points[i].second, kRadius, "dot tile", formatted("%zu kernels: %.4f", i + 1, curve[i]));
  svg.text(kRight, 16, Anchor::end, mark, "mark");
  return svg.finished();
}

}  // namespace gemm
