// The plots of the HTML report, each an SVG element, or empty where there is nothing to draw. `mark` is written into a
// corner, so that a picture that is cut out of the page still says whether its times are a model's.
#pragma once

#include <string>
#include <vector>

#include "tuner/report_rows.h"

namespace gemm {

// Intensity against speed on logarithmic axes, below the ceilings that are known. `nominal_gflops` stands in for a ceiling
// that was not measured.
std::string roofline_plot(const std::vector<ReportRow>& rows, const Roofs& roofs,
                          const std::optional<double>& nominal_gflops, const std::string& mark);

// A dot for each row by its speed over the better baseline, sorted within its group, with the group's geometric mean.
std::string speedup_plot(const std::vector<ReportRow>& rows, const std::string& mark);

// m over n for three ranges of k, coloured by the speed over the better baseline.
std::string size_map(const std::vector<ReportRow>& rows, const std::string& mark);

// Share of the whole portfolio's speed that its first kernels reach.
std::string curve_plot(const std::vector<double>& curve, const std::string& mark);

// What the colours of size_map mean, and those of the other two.
std::string speedup_legend();
std::string server_legend();

}  // namespace gemm
