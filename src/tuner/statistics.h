// Statistics of time samples, and when two of them count as equal.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "dispatch/table.h"

namespace gemm {

// Medians closer than this count as a tie (0.5 %): equal kernels that are measured in turns differ by less.
inline constexpr double kTieMargin = 0.005;

// Median and 20th and 80th percentile; n = 0 for no samples.
TimeStats summarise(std::vector<double> samples_us);

// True when there is a sample and all are finite and above zero: a failed launch must not win.
bool plausible(const std::vector<double>& samples_us);

// True when the median is more than 10 % above the shortest sample: what it says is not how long the kernel takes. The
// thread that launches may have had to wait for a processor.
bool disturbed(const std::vector<double>& samples_us);

// What `measure` returns, which is called up to three times until its samples agree; else the samples with the least median.
std::vector<double> undisturbed(const std::function<std::vector<double>()>& measure);

// Largest relative difference to `best` that is still a tie: 0.5 %, or twice the standard error of the median where that is
// more (but never more than 5 %, so that a disturbed measurement does not make everything equal).
double tie_margin(const TimeStats& best);

// Of what is added; values that are missing or not above zero do not count.
class GeometricMean {
 public:
  void add(const std::optional<double>& value);
  std::optional<double> value() const;  // nothing where nothing counted
  int count() const { return count_; }

 private:
  double sum_of_logs_ = 0;
  int count_ = 0;
};

}  // namespace gemm
