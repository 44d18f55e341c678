#include "tuner/html_report.h"

#include <algorithm>

#include "tuner/formatted.h"
#include "tuner/html_style.h"
#include "tuner/html_text.h"
#include "tuner/report_plots.h"
#include "tuner/report_rows.h"
#include "tuner/report_tables.h"
#include "tuner/statistics.h"

namespace gemm {
namespace {

constexpr size_t kMostWarnings = 20;  // that are shown; a table with more of them is damaged as a whole

bool measured(const Table& table) { return table.provenance == "measured"; }

// What each plot says in its corner.
std::string mark_of(const Table& table) { return measured(table) ? "" : "MODELLED, not measured"; }

std::string paragraph(const std::string& markup, const std::string& style = "") {
  return (style.empty() ? "<p>" : "<p class=\"" + style + "\">") + markup + "</p>\n";
}

std::string missing(const std::string& markup) { return paragraph(markup, "missing"); }

std::string figure(const std::string& svg, const std::string& legend, const std::string& caption) {
  return "<figure>\n" + legend + svg + "<figcaption>" + caption + "</figcaption></figure>\n";
}

std::string section(const char* id, const char* title, const std::string& content) {
  return formatted("<section id=\"%s\"><h2>%s</h2>\n", id, title) + content + "</section>\n";
}

std::string definition(const std::string& term, const std::string& text) {
  return "<dt>" + escaped(term) + "</dt><dd>" + escaped(text) + "</dd>\n";
}

std::string banner(const Table& table) {
  if (measured(table)) return {};
  return "<div class=\"alarm\" role=\"alert\">MODELLED, not measured: all times of this table come from the time model of "
         "an "
         "emulated device. No GPU was timed.</div>\n";
}

std::string device_text(const DeviceInfo& device) {
  return formatted("sm_%d, %d multiprocessors, %lld MiB, %d MHz", device.limits.compute_capability, device.sm_count,
                   static_cast<long long>(device.memory_bytes >> 20), device.sm_clock_mhz);
}

std::string head(const ReportInput& input) {
  const Table& table = input.table;
  std::string out = "<h1>" + escaped(table.device.name) + ": tuning table</h1>\n" +
                    paragraph(measured(table) ? "Times were <b>measured</b> on this GPU."
                                              : "Times are <b>modelled</b>: no GPU was timed.") +
                    "<dl>\n" + definition("table", input.table_path) + definition("device", device_text(table.device));
  for (const auto& [key, value] : table.environment) out += definition(key, value);
  for (const char* key : {"driver", "date", "command"})
    if (table.environment.count(key) == 0) out += definition(key, "not in the table");
  if (!input.bench.empty()) out += definition("benchmark", input.bench_path);
  return out + "</dl>\n";
}

std::string tile(const std::string& value, const std::string& what, const std::string& note) {
  return "<div><b>" + value + "</b><span>" + what + "</span><small>" + note + "</small></div>\n";
}

struct Summary {
  GeometricMean best, cublas;
  size_t own = 0;
  std::optional<double> worst;
  std::string worst_problem;
};

Summary summary_of(const std::vector<ReportRow>& rows) {
  Summary summary;
  for (const ReportRow& row : rows) {
    summary.best.add(row.over_best());
    summary.cublas.add(row.over_cublas());
    summary.own += row.server == "cublas" ? 0 : 1;
    if (!row.over_best() || (summary.worst && *row.over_best() >= *summary.worst)) continue;
    summary.worst = row.over_best();
    summary.worst_problem = to_string(row.problem);
  }
  return summary;
}

std::string times_text(const std::optional<double>& value) { return value ? number_text(value, 3) + "×" : "–"; }

std::string speed_tiles(const std::vector<ReportRow>& rows) {
  const Summary summary = summary_of(rows);
  const auto of = [](const GeometricMean& mean) {
    return mean.count() > 0 ? formatted("geometric mean of %d", mean.count()) : "no baselines";
  };
  return tile(rows.empty()
                  ? "–"
                  : formatted("%.1f %%", 100.0 * static_cast<double>(summary.own) / static_cast<double>(rows.size())),
              "served by own kernels",
              rows.empty() ? "no points" : formatted("%zu of %zu, the others by cuBLAS", summary.own, rows.size())) +
         tile(times_text(summary.cublas.value()), "cublasSgemm ÷ ours", of(summary.cublas)) +
         tile(times_text(summary.best.value()), "better baseline ÷ ours", of(summary.best)) +
         tile(times_text(summary.worst), "worst", summary.worst ? escaped(summary.worst_problem) : "no baselines");
}

std::string tiles(const Table& table, const std::vector<ReportRow>& rows) {
  return "<div class=\"tiles\">\n" +
         tile(std::to_string(rows.size()), "tuned points", measured(table) ? "measured" : "modelled") +
         tile(std::to_string(table.portfolio.size()), "kernels in the portfolio", "") + speed_tiles(rows) + "</div>\n";
}

// Two operations for each FP32 lane and clock. Nothing where the table does not know the clock.
std::optional<double> nominal_gflops(const DeviceInfo& device) {
  const int capability = device.limits.compute_capability;
  const int lanes = capability == 75 || capability == 80 ? 64 : 128;
  return usable(2.0 * lanes * device.sm_count * device.sm_clock_mhz / 1e3);
}

std::string roofline_section(const Table& table, const std::vector<ReportRow>& rows, const Roofs& roofs) {
  const std::string svg = roofline_plot(rows, roofs, nominal_gflops(table.device), mark_of(table));
  if (svg.empty()) return section("roofline", "Roofline", missing("No point has a time, so there is nothing to draw."));
  const std::string ceilings =
      roofs.gflops || roofs.gbytes_per_s
          ? "Ceilings are those of the benchmark's floor_us. A dot may lie above the sloped one: the copy that measured it "
            "reads as much as it writes, and operands may be in the L2 cache."
          : "The table holds no measured ceilings; <code>--bench</code> with the CSV of gemm-bench adds them.";
  return section("roofline", "Roofline", figure(svg, server_legend(), "Each dot is the winner of one point. " + ceilings));
}

std::string no_baselines() {
  return missing("No row has a time of cuBLAS or cuBLASLt, so there is no speedup to show. Emulated devices have neither.");
}

std::string speedup_figure(const std::vector<ReportRow>& rows, const std::string& mark) {
  const std::string svg = speedup_plot(rows, mark);
  if (svg.empty()) return no_baselines();
  return figure(
      svg, server_legend(),
      "Each dot is one problem, sorted within its group; the line across a group is its geometric mean. The better "
      "baseline is the faster of cublasSgemm and the best of cuBLASLt's heuristics. Dots below 0.25× and above 16× lie "
      "at the edge.");
}

std::string map_section(const Table& table, const std::vector<ReportRow>& rows) {
  const std::string svg = size_map(rows, mark_of(table));
  if (svg.empty()) return section("map", "Map of sizes", missing("The table has no points."));
  return section(
      "map", "Map of sizes",
      figure(svg, speedup_legend(),
             "Colour: the better baseline's time over the winner's. Dots grow with k; the op pairs of one size lie "
             "beside each other: NN upper left, NT upper right, TN lower left, TT lower right."));
}

// "4 kernels reach 0.90 and 9 reach 0.95 of …" for shares that are reached.
std::string curve_words(const std::vector<double>& curve) {
  std::string words;
  for (const double share : {0.9, 0.95, 0.99}) {
    const auto reached = std::find_if(curve.begin(), curve.end(), [&](double value) { return value >= share; });
    if (reached != curve.end()) words += formatted(" %td kernels reach %.2f.", reached - curve.begin() + 1, share);
  }
  return words;
}

std::string portfolio_section(const Table& table) {
  if (table.portfolio.empty()) return section("portfolio", "Portfolio", missing("The table has no kernels."));
  const std::string svg = curve_plot(table.portfolio_curve, mark_of(table));
  const std::string curve =
      svg.empty() ? missing("The table has no portfolio curve: it was not calibrated.")
                  : figure(svg, "",
                           "Share of the whole portfolio's speed that its first kernels reach, geometric mean over the "
                           "certificate's problems." +
                               curve_words(table.portfolio_curve));
  return section("portfolio", "Portfolio", portfolio_table(table) + curve);
}

std::string certificate_section(const Table& table) {
  const bool there = table.certificate && (table.certificate->box || table.certificate->outside);
  return section("certificate", "Certificate of the selector",
                 there
                     ? paragraph("How good the choice for untuned problems is, on random problems that took no part in the "
                                 "fit. 1 is the portfolio's best kernel.",
                                 "soft") +
                           certificate_table(*table.certificate)
                     : missing("The table has no certificate: it was not calibrated, so nothing is known of problems that "
                               "were not tuned."));
}

std::string points_section(const Table& table, const std::vector<ReportRow>& rows) {
  return section("points", "All points",
                 rows.empty() ? missing("The table has no points.")
                              : paragraph("Click a column to sort. The filter takes words, and bounds such as "
                                          "<code>xbest&lt;1 k&gt;4096 ops TN</code>.",
                                          "soft") +
                                    points_table(table, rows));
}

std::string bench_section(const Table& table, const std::vector<ReportRow>& rows, const std::string& path) {
  if (rows.empty())
    return section("bench", "Benchmark",
                   missing("None was given. <code>--bench FILE.csv</code> adds the output of gemm-bench."));
  const bool baselines =
      std::any_of(rows.begin(), rows.end(), [](const ReportRow& row) { return row.best_us().has_value(); });
  std::string origin = "From " + escaped(path) + ", which does not name its GPU: it is up to you that it is this one.";
  if (!baselines) origin += " It has no baselines, as runs on an emulated device: <b>its times may be modelled</b>.";
  return section("bench", "Benchmark",
                 paragraph(origin, "soft") + "<div class=\"tiles\">\n" + speed_tiles(rows) + "</div>\n" +
                     speedup_figure(rows, baselines ? "" : "may be MODELLED") + "<h3>By class</h3>\n" + means_table(rows) +
                     "<h3>All shapes</h3>\n" + bench_table(table, rows));
}

std::string warnings_section(const std::vector<std::string>& warnings) {
  if (warnings.empty()) return {};
  std::string list = paragraph(formatted("%zu parts of the table could not be used:", warnings.size())) + "<ul>\n";
  for (size_t i = 0; i < std::min(warnings.size(), kMostWarnings); ++i) list += "<li>" + escaped(warnings[i]) + "</li>\n";
  if (warnings.size() > kMostWarnings) list += formatted("<li>and %zu more</li>\n", warnings.size() - kMostWarnings);
  return section("damage", "Damage", list + "</ul>\n");
}

std::string method_section(const Table& table) {
  if (table.method.empty()) return section("method", "Method", missing("The table does not say how times were taken."));
  std::string list = "<dl>\n";
  for (const auto& [key, value] : table.method) list += definition(key, value);
  return section("method", "Method", list + "</dl>\n");
}

// `title` is escaped.
std::string page(const std::string& title, const std::string& body) {
  return "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head><meta charset=\"utf-8\"/>\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
         "'unsafe-inline'\"/>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
         title + "</title>\n<style>" + kReportStyle + "</style></head>\n<body>\n" + body + "<script>" + kReportScript +
         "</script>\n</body></html>\n";
}

const char* const kNavigation =
    "<nav><a href=\"#roofline\">roofline</a><a href=\"#speedups\">speedups</a><a href=\"#map\">map</a>"
    "<a href=\"#portfolio\">portfolio</a><a href=\"#certificate\">certificate</a><a href=\"#bench\">benchmark</a>"
    "<a href=\"#points\">points</a><a href=\"#method\">method</a></nav>\n";

}  // namespace

std::string html_report(const ReportInput& input) {
  const Table& table = input.table;
  const std::vector<ReportRow> points = report_rows(table), bench = report_rows(input.bench);
  const std::string title = (measured(table) ? "" : "[MODELLED] ") + escaped(table.device.name) + ": tuning table";
  return page(title, banner(table) + head(input) + tiles(table, points) + kNavigation + warnings_section(input.warnings) +
                         roofline_section(table, points, roofs_of(bench)) +
                         section("speedups", "Speed against the baselines", speedup_figure(points, mark_of(table))) +
                         map_section(table, points) + portfolio_section(table) + certificate_section(table) +
                         bench_section(table, bench, input.bench_path) + points_section(table, points) +
                         method_section(table));
}

}  // namespace gemm
