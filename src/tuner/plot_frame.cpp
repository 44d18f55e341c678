#include "tuner/plot_frame.h"

#include "tuner/formatted.h"

namespace gemm {
namespace {

constexpr double kBelow = 16, kBeside = 7;  // from an axis to its numbers
constexpr double kHalfDigit = 4;            // centres a number on its line
constexpr double kKi = 1024;
constexpr size_t kMany = 1000;  // more dots than that touch each other in a plot of about as many pixels

}  // namespace

void draw_x_axis(SvgPlot& svg, const LogAxis& x, const LogAxis& y, int most_ticks, const TickText& text) {
  for (const double tick : x.ticks(most_ticks)) {
    svg.line(x.at(tick), y.from_px(), x.at(tick), y.to_px(), "grid");
    svg.text(x.at(tick), y.from_px() + kBelow, Anchor::middle, text(tick));
  }
}

void draw_y_axis(SvgPlot& svg, const LogAxis& x, const LogAxis& y, int most_ticks, const TickText& text) {
  for (const double tick : y.ticks(most_ticks)) {
    svg.line(x.from_px(), y.at(tick), x.to_px(), y.at(tick), "grid");
    svg.text(x.from_px() - kBeside, y.at(tick) + kHalfDigit, Anchor::end, text(tick));
  }
}

DotLook dot_look(size_t count) { return count > kMany ? DotLook{2, "dot dense "} : DotLook{3.4, "dot "}; }

std::string decimal_tick(double value) {
  if (value < 1 || value > 1e6) return formatted("%.3g", value);
  return formatted("%.0f", value);
}

std::string size_tick(double value) {
  if (value >= kKi * kKi) return formatted("%.0fMi", value / (kKi * kKi));
  return value >= 64 * kKi ? formatted("%.0fKi", value / kKi) : formatted("%.0f", value);
}

}  // namespace gemm
