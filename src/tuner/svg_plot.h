// Small pieces of SVG for the HTML report: logarithmic axes, dots, lines, words. Colours come from the page's style sheet,
// by class.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gemm {

// Where values lie between two ends of a logarithmic scale.
class LogAxis {
 public:
  // Whole powers of `base` from the largest below `low` to the smallest above `high`, both finite and above zero.
  LogAxis(double low, double high, double base, double from_px, double to_px);

  // Values outside are drawn at the nearer end.
  double at(double value) const;
  double from_px() const { return from_px_; }
  double to_px() const { return to_px_; }
  double low() const;
  double high() const;

  // At most `most` powers of the base, evenly spaced.
  std::vector<double> ticks(int most) const;

 private:
  double base_;
  int low_power_, high_power_;
  double from_px_, to_px_;
};

enum class Anchor { start, middle, end };

class SvgPlot {
 public:
  // `label` says what it shows to those who do not see it.
  SvgPlot(double width, double height, const std::string& label);

  void line(double x1, double y1, double x2, double y2, const std::string& style);
  void path(const std::vector<std::pair<double, double>>& points, const std::string& style);
  void text(double x, double y, Anchor anchor, const std::string& words, const std::string& style = "");
  // Upwards, along a vertical axis.
  void vertical_text(double x, double y, const std::string& words);
  void dot(double x, double y, double radius, const std::string& style, const std::string& title);

  // The whole element.
  std::string finished() const { return svg_ + "</svg>\n"; }

 private:
  std::string svg_;
};

}  // namespace gemm
