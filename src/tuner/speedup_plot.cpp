#include <algorithm>
#include <map>

#include "tuner/formatted.h"
#include "tuner/html_text.h"
#include "tuner/plot_frame.h"
#include "tuner/report_plots.h"
#include "tuner/statistics.h"

namespace gemm {
namespace {

constexpr double kWidth = 980, kHeight = 420, kLeft = 60, kRight = 970, kTop = 26, kBottom = 350;
constexpr double kGroupWidth = 68;   // room for a group's name and mean
constexpr size_t kMostGroups = 12;   // that fit beside each other with that room
constexpr size_t kLongestName = 12;  // characters, in that room
constexpr double kRootOfTwo = 1.4142135623730951;
constexpr double kSlowest = 0.25, kFastest = 16;  // beyond these, dots lie at the edge and do not squeeze the others

struct Group {
  std::string name;
  std::vector<const ReportRow*> rows;  // by speed
  std::optional<double> mean() const {
    GeometricMean mean;
    for (const ReportRow* row : rows) mean.add(row->over_best());
    return mean.value();
  }
};

// In order of appearance; beyond what fits, the smallest are put together.
std::vector<Group> groups_of(const std::vector<ReportRow>& rows) {
  std::vector<Group> groups;
  std::map<std::string, size_t> place;
  for (const ReportRow& row : rows) {
    if (!row.over_best()) continue;
    const auto [found, added] = place.emplace(row.group, groups.size());
    if (added) groups.push_back({row.group, {}});
    groups[found->second].rows.push_back(&row);
  }
  if (groups.size() > kMostGroups) {
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Group& a, const Group& b) { return a.rows.size() > b.rows.size(); });
    Group others{formatted("%zu others", groups.size() - kMostGroups + 1), {}};
    for (size_t i = kMostGroups - 1; i < groups.size(); ++i)
      others.rows.insert(others.rows.end(), groups[i].rows.begin(), groups[i].rows.end());
    groups.resize(kMostGroups - 1);
    groups.push_back(others);
  }
  for (Group& group : groups)
    std::stable_sort(group.rows.begin(), group.rows.end(),
                     [](const ReportRow* a, const ReportRow* b) { return *a->over_best() < *b->over_best(); });
  return groups;
}

// Not in the middle of a character: bytes that go on with one are 10xxxxxx.
std::string shortened(const std::string& name) {
  if (name.size() <= kLongestName) return name;
  size_t end = kLongestName - 1;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return name.substr(0, end) + "…";
}

void draw_group(SvgPlot& svg, const LogAxis& y, const Group& group, double from, double to, const DotLook& look) {
  const double step = (to - from) / static_cast<double>(group.rows.size() + 1);
  for (size_t i = 0; i < group.rows.size(); ++i) {
    const ReportRow& row = *group.rows[i];
    svg.dot(from + step * static_cast<double>(i + 1), y.at(*row.over_best()), look.radius, look.style + row.server,
            row.described());
  }
  const double mean = group.mean().value_or(1);
  svg.line(from + 4, y.at(mean), to - 4, y.at(mean), "mean");
  const double middle = (from + to) / 2;
  svg.text(middle, kBottom + 18, Anchor::middle, shortened(group.name), "strong");
  svg.text(middle, kBottom + 34, Anchor::middle, number_text(mean, 2) + "×");
  svg.text(middle, kBottom + 50, Anchor::middle, formatted("of %zu", group.rows.size()));
}

std::string times_tick(double value) { return formatted("%.2g×", value); }

}  // namespace

std::string speedup_plot(const std::vector<ReportRow>& rows, const std::string& mark) {
  const std::vector<Group> groups = groups_of(rows);
  if (groups.empty()) return {};
  double low = 1 / kRootOfTwo, high = kRootOfTwo;
  size_t dots = 0;
  for (const Group& group : groups) {
    low = std::min(low, *group.rows.front()->over_best());
    high = std::max(high, *group.rows.back()->over_best());
    dots += group.rows.size();
  }
  const LogAxis x(1, 2, 2, kLeft, kRight);  // for its ends alone
  const LogAxis y(std::max(low, kSlowest), std::min(high, kFastest), kRootOfTwo, kBottom, kTop);
  SvgPlot svg(kWidth, kHeight, "Speed over the better baseline, by group");
  draw_y_axis(svg, x, y, 16, times_tick);
  svg.line(kLeft, y.at(1), kRight, y.at(1), "parity");
  const double shared = kRight - kLeft - kGroupWidth * static_cast<double>(groups.size());
  double from = kLeft;
  for (const Group& group : groups) {
    const double to = from + kGroupWidth + shared * static_cast<double>(group.rows.size()) / static_cast<double>(dots);
    draw_group(svg, y, group, from, to, dot_look(dots));
    if (to < kRight - 1) svg.line(to, kTop, to, kBottom + 54, "grid");
    from = to;
  }
  svg.vertical_text(16, (kTop + kBottom) / 2, "better baseline's time ÷ winner's");
  svg.text(kRight, 16, Anchor::end, mark, "mark");
  return svg.finished();
}

}  // namespace gemm
