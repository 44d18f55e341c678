#include "tuner/svg_plot.h"

#include <algorithm>
#include <cmath>

#include "tuner/formatted.h"
#include "tuner/html_text.h"

namespace gemm {
namespace {

constexpr double kRounding = 1e-9;  // of a logarithm: a whole power is not raised to the next one

const char* anchor_name(Anchor anchor) {
  switch (anchor) {
    case Anchor::start: return "start";
    case Anchor::middle: return "middle";
    default: return "end";
  }
}

std::string class_of(const std::string& style) { return style.empty() ? "" : " class=\"" + style + "\""; }

}  // namespace

LogAxis::LogAxis(double low, double high, double base, double from_px, double to_px)
    : base_(base),
      low_power_(static_cast<int>(std::floor(std::log(low) / std::log(base) + kRounding))),
      high_power_(static_cast<int>(std::ceil(std::log(high) / std::log(base) - kRounding))),
      from_px_(from_px),
      to_px_(to_px) {
  if (high_power_ <= low_power_) high_power_ = low_power_ + 1;
}

double LogAxis::low() const { return std::pow(base_, low_power_); }

double LogAxis::high() const { return std::pow(base_, high_power_); }

double LogAxis::at(double value) const {
  if (!(value > 0)) return from_px_;
  const double share = (std::log(value) / std::log(base_) - low_power_) / (high_power_ - low_power_);
  return from_px_ + std::clamp(share, 0.0, 1.0) * (to_px_ - from_px_);
}

std::vector<double> LogAxis::ticks(int most) const {
  const int step = std::max(1, (high_power_ - low_power_ + most - 1) / most);
  std::vector<double> values;
  for (int power = low_power_; power <= high_power_; power += step)
    if (const double value = std::pow(base_, power); std::isnormal(value)) values.push_back(value);
  return values;
}

SvgPlot::SvgPlot(double width, double height, const std::string& label)
    : svg_(formatted("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", width,
                     height) +
           escaped(label) + "\">\n") {}

void SvgPlot::line(double x1, double y1, double x2, double y2, const std::string& style) {
  svg_ += formatted("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"", x1, y1, x2, y2) + class_of(style) + "/>\n";
}

void SvgPlot::path(const std::vector<std::pair<double, double>>& points, const std::string& style) {
  if (points.empty()) return;
  svg_ += "<polyline points=\"";
  for (const auto& [x, y] : points) svg_ += formatted("%.1f,%.1f ", x, y);
  svg_.back() = '"';
  svg_ += class_of(style) + "/>\n";
}

void SvgPlot::text(double x, double y, Anchor anchor, const std::string& words, const std::string& style) {
  svg_ += formatted("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"", x, y, anchor_name(anchor)) + class_of(style) + ">" +
          escaped(words) + "</text>\n";
}

void SvgPlot::vertical_text(double x, double y, const std::string& words) {
  svg_ += formatted("<text transform=\"translate(%.1f %.1f) rotate(-90)\" text-anchor=\"middle\">", x, y) + escaped(words) +
          "</text>\n";
}

void SvgPlot::dot(double x, double y, double radius, const std::string& style, const std::string& title) {
  svg_ += formatted("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"", x, y, radius) + class_of(style) + "><title>" +
          escaped(title) + "</title></circle>\n";
}

}  // namespace gemm
