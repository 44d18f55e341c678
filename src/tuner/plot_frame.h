// Axes and grid that the plots of the HTML report share.
#pragma once

#include <functional>
#include <string>

#include "tuner/svg_plot.h"

namespace gemm {

// Grid lines and the numbers below or beside them.
using TickText = std::function<std::string(double)>;
void draw_x_axis(SvgPlot& svg, const LogAxis& x, const LogAxis& y, int most_ticks, const TickText& text);
void draw_y_axis(SvgPlot& svg, const LogAxis& x, const LogAxis& y, int most_ticks, const TickText& text);

// Of a dot among `count`: where there are many, they are smaller and without an outline, which would be all that is seen.
struct DotLook {
  double radius;
  const char* style;
};
DotLook dot_look(size_t count);

std::string decimal_tick(double value);  // 0.01, 100, 1000000, 1e+07
std::string size_tick(double value);     // 4096, 128Ki, 1Mi: powers of two

}  // namespace gemm
