// The HTML report: its numbers, its marks, what it says where something is missing, and the program that writes it.
#include "tuner/html_report.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <ctime>
#include <fstream>
#include <sstream>

#include "command.h"
#include "dispatch_cases.h"
#include "tuner/bench_csv.h"
#include "tuner/bench_report.h"
#include "tuner/formatted.h"
#include "tuner/report_rows.h"

namespace gemm {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinite = std::numeric_limits<double>::infinity();
const Choice kChoice{emulated_configs()[2], 4, Reduction::kernel};
const std::string kModelled = "MODELLED, not measured";

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// Two points by an own kernel, one by cuBLAS; measured.
Table sample_table() {
  Table table = test::table_of(
      default_emulator_options().info, kChoice,
      {packed_problem(256, 256, 256), packed_problem(64, 64, 4096, Op::T, Op::N), packed_problem(512, 16, 512)});
  table.provenance = "measured";
  table.device.name = "Sample GPU";
  table.environment = {{"driver", "580.1"}, {"date", "2026-11-29"}, {"command", "gemm-tune --gpu 0"}};
  table.points[0].cublas_us = 20, table.points[0].cublaslt_best_us = 16;
  table.points[1].cublas_us = 9;
  table.points[2].use_cublas = true, table.points[2].cublas_us = 8, table.points[2].cublaslt_best_us = 4;
  return table;
}

Table modelled_table() {
  Table table = sample_table();
  table.provenance = "modelled";
  for (TablePoint& point : table.points) point.cublas_us = point.cublaslt_best_us = std::nullopt;
  return table;
}

BenchRow bench_row(const std::string& shape_class, const Problem& problem, double ours_us, std::optional<double> cublas_us) {
  BenchRow row;
  row.shape = {shape_class, problem};
  row.rule = Rule::exact;
  row.choice = kChoice;
  row.ours_us = ours_us;
  row.cublas_us = cublas_us;
  row.floor_us = floor_us({60e6, 4e6}, problem);
  return row;
}

std::string page_of(const Table& table, const std::vector<BenchRow>& bench = {},
                    const std::vector<std::string>& warnings = {}) {
  return html_report({table, "t.json", warnings, bench, "b.csv"});
}

// Looks at pages with an XML parser and a browser's view of tags.
class HtmlReport : public testing::Test {
 protected:
  void expect_valid(const std::string& page) {
    static const bool python = test::run_command("python3 -c ''").exit_code == 0;
    if (!python) GTEST_SKIP() << "python3 is not installed, so pages were not validated";
    std::ofstream(folder_.file("page.html")) << page;
    const auto result = test::run_command("python3 '" + std::string(GEMM_SOURCE_DIR) + "/tests/validate_report.py' '" +
                                          folder_.file("page.html") + "'");
    EXPECT_EQ(result.exit_code, 0) << result.output;
    for (const char* number : {"\"nan", "\"-nan", "\"inf", ">nan", ">inf"}) EXPECT_EQ(page.find(number), std::string::npos);
  }
  test::TemporaryFolder folder_;
};

void expect_parts(const std::string& page, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST_F(HtmlReport, SumsUpAndListsThePoints) {
  const std::string page = page_of(sample_table());
  expect_valid(page);
  // Winners take 10, 10 and 8 (cuBLAS) microseconds.
  const double over_cublas = std::cbrt(2.0 * 0.9 * 1), over_best = std::cbrt(1.6 * 0.9 * 0.5);
  expect_parts(page, {formatted("<b>%.3f×</b><span>cublasSgemm ÷ ours", over_cublas),
                      formatted("<b>%.3f×</b><span>better baseline ÷ ours", over_best),
                      "<b>0.500×</b><span>worst</span><small>512x16x512 NN", "<b>66.7 %</b>", "2 of 3, the others by cuBLAS",
                      "<dd>580.1</dd>", "<dd>gemm-tune --gpu 0</dd>", "<b>measured</b>"});
  // m, n, k, ops, batch, time, GFLOP/s, both baselines, both ratios, error, winner.
  expect_parts(page, {formatted("<td class=\"n\">256</td><td class=\"n\">256</td><td class=\"n\">256</td><td>NN</td>"
                                "<td class=\"n\">1</td><td class=\"n\">10.00</td><td class=\"n\">%.1f</td>"
                                "<td class=\"n\">20.00</td><td class=\"n\">16.00</td><td class=\"n\">2.000</td>"
                                "<td class=\"n\">1.600</td><td class=\"n\">–</td><td><a href=\"#kernel0\"><code>",
                                2.0 * 256 * 256 * 256 / 10e3),
                      "<td>split 4 kernel</td>", "<code>cublas</code></td><td></td>",
                      "512x16x512 NN: 8.00 µs, 1049 GFLOP/s, cublas, 0.500× the better baseline, own kernel 10.00 µs"});
  EXPECT_EQ(page.find("ODELLED"), std::string::npos);
}

TEST_F(HtmlReport, KeepsToTheNumbersOfTheShippedTable) {
  const std::string source = GEMM_SOURCE_DIR;
  std::vector<std::string> warnings;
  const Table table = load_table(source + "/configs/nvidia-h200.json", &warnings).value_or_throw();
  const std::vector<BenchRow> bench = read_bench_csv(source + "/docs/performance.csv").value_or_throw();
  const std::string page = page_of(table, bench);
  expect_valid(page);
  double logs = 0;
  std::map<std::string, int> wins;
  for (const TablePoint& point : table.points) {
    logs += std::log(*point.cublas_us / (point.use_cublas ? *point.cublas_us : point.time_us.median));
    if (!point.use_cublas) ++wins[point.kernel];
  }
  expect_parts(page, {formatted("<b>%.3f×</b>", std::exp(logs / static_cast<double>(table.points.size())))});
  for (const PortfolioKernel& kernel : table.portfolio)
    expect_parts(page,
                 {formatted("<td class=\"n\">%d</td><td><code>%s</code></td><td class=\"n\">%d</td><td class=\"n\">%d</td>"
                            "<td class=\"n\">%d</td>",
                            wins[kernel.id], kernel.id.c_str(), kernel.registers, kernel.spill_bytes, kernel.shared_bytes)});
  // What gemm-bench says of the same file.
  std::istringstream summary(bench_summary(bench));
  int classes = 0;
  for (std::string line, name, shapes, best, cublas, floor; std::getline(summary, line);)
    if (std::istringstream(line) >> name >> shapes >> best >> cublas >> floor && std::isdigit(shapes[0]) != 0) {
      const auto number = [](const std::string& text) { return "<td class=\"n\">" + text + "</td>"; };
      expect_parts(page, {"<td>" + name + "</td>" + number(shapes) + number(best) + number(cublas) + number(floor)});
      ++classes;
    }
  EXPECT_GT(classes, 5);
  EXPECT_EQ(count_of(page, "<svg"), 5) << "roofline, speedups, map, curve, benchmark";
  const std::string missing = "class=\"missing\"";
  Table complete = table, uncertified = table;
  complete.certificate = {CertificateGroup{}, CertificateGroup{}};
  uncertified.certificate.reset();
  EXPECT_EQ(page_of(complete, bench).find(missing), std::string::npos);
  EXPECT_EQ(count_of(page_of(uncertified, bench), missing), 1) << "it says that it has no certificate";
}

TEST_F(HtmlReport, ModelledTimesAreMarkedEverywhere) {
  const std::string page = page_of(modelled_table());
  expect_valid(page);
  expect_parts(page, {"<title>[MODELLED] ", "role=\"alert\">" + kModelled, "<small>modelled</small>",
                      "No row has a time of cuBLAS", "nominal: lanes × clock × 2, not measured"});
  EXPECT_EQ(count_of(page, "class=\"mark\">" + kModelled), count_of(page, "<svg"));
  EXPECT_GT(count_of(page, "<svg"), 1);
  const std::string with_bench = page_of(sample_table(), {bench_row("a", packed_problem(64, 64, 64), 2, std::nullopt)});
  expect_parts(with_bench, {"its times may be modelled"});
}

TEST_F(HtmlReport, SaysWhatIsMissing) {
  Table empty = sample_table();
  empty.points.clear(), empty.portfolio.clear(), empty.environment.clear(), empty.method.clear();
  const std::string page = page_of(empty);
  expect_valid(page);
  EXPECT_EQ(count_of(page, "<svg"), 0);
  expect_parts(page, {"<dt>driver</dt><dd>not in the table", "<dt>date</dt><dd>not in the table", "no points", "no kernels",
                      "no certificate", "No point has a time", "does not say how times were taken", "--bench FILE.csv"});
  Table partly = sample_table();
  partly.certificate.emplace().outside = CertificateGroup{45, 0.875, 0.5, 0.25, packed_problem(7, 8, 9), {}, {}, 3};
  const std::string half = page_of(partly);
  expect_valid(half);
  expect_parts(half, {"The table has no portfolio curve", "0.875", "0.500", "0.250", "7x8x9 NN", "<td class=\"n\">45</td>"});
  EXPECT_EQ(half.find(">box<"), std::string::npos);
}

TEST_F(HtmlReport, AHostileTableInjectsNothing) {
  const std::string attack = "</title></script><script>alert(1)</script><img src=x onerror='alert(2)'>\" onload=\"x\xFF\x01";
  Table table = sample_table();
  table.device.name = attack;
  table.environment[attack] = attack;
  table.method[attack] = attack;
  table.portfolio[0].id = attack;
  for (TablePoint& point : table.points) point.kernel = attack, point.ties = {attack};
  const std::string page = html_report(
      {table, attack, std::vector<std::string>(30, attack), {bench_row(attack, packed_problem(1, 2, 3), 1, 2)}, attack});
  expect_valid(page);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  expect_parts(page, {"&lt;script&gt;alert(1)", "and 10 more"});
}

TEST_F(HtmlReport, DrawsNoImpossibleNumbers) {
  const double values[] = {0, -1, kNan, kInfinite, 5e-324, 1e-300, 1e300, 1};
  Table table = sample_table();
  for (const double time : values)
    for (const double baseline : values) {
      table.points.push_back(table.points[0]);
      table.points.back().time_us.median = time;
      table.points.back().cublas_us = baseline;
      table.points.back().max_scaled_error = baseline;
    }
  table.portfolio_curve = {0.5, kNan, 1};
  table.certificate.emplace().box = CertificateGroup{1, kNan, kInfinite, 0, packed_problem(1, 1, 1), kNan, kInfinite, 0};
  expect_valid(
      page_of(table, {bench_row("a", packed_problem(1, 1, 1), kNan, 1), bench_row("", packed_problem(2, 2, 2), 1, 0)}));
  for (const double share : {0.0, 0.95, 1.0}) {
    table.portfolio_curve = {share};
    expect_valid(page_of(table));
  }
  table.points.resize(1);
  expect_valid(page_of(table));
}

TEST_F(HtmlReport, TenThousandPointsAndAThousandClasses) {
  Table table = sample_table();
  const TablePoint point = table.points[0];
  std::vector<BenchRow> bench;
  for (int i = 0; i < 10'000; ++i) {
    table.points.push_back(point);
    table.points.back().problem = packed_problem(1 + i, 1 + i % 97, 1 + i * 13);
    if (i % 10 == 0) bench.push_back(bench_row("a class of its own µ" + std::to_string(i), point.problem, 1 + i, 1000));
  }
  // The processor's time: other programs must not count.
  const std::clock_t start = std::clock();
  const std::string page = page_of(table, bench);
  EXPECT_LT(std::clock() - start, 5 * CLOCKS_PER_SEC) << "it takes longer where it is quadratic";
  EXPECT_LT(page.size(), size_t{24} << 20);
  expect_parts(page, {">10003 rows<", "989 others"});
  expect_valid(page);
}

TEST(ReportRows, SayHowTheWinnerIsLaunched) {
  Table table = sample_table();
  table.points[0].relayout = Relayout::ab;
  table.points[1].split_k = 1, table.points[1].reduction = Reduction::stream_k;
  table.points.push_back(table.points[1]);
  table.points.back().reduction = Reduction::ticket;
  const char* expected[] = {"split 4 kernel/relayout ab", "stream_k", "", ""};  // the third is cuBLAS's
  const std::vector<ReportRow> rows = report_rows(table);
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].launch, expected[i]) << i;
}

TEST(ReportRows, RoofsAreThoseThatTheFloorsWereMadeOf) {
  const Problem deep = packed_problem(4096, 4096, 4096), flat = packed_problem(8192, 1, 8192);
  const auto roofs = [](const std::vector<Problem>& problems) {
    std::vector<BenchRow> rows;
    rows.reserve(problems.size());
    for (const Problem& p : problems) rows.push_back(bench_row("a", p, 1, 1));
    return roofs_of(report_rows(rows));
  };
  const Roofs both = roofs({deep, flat, packed_problem(2048, 2048, 2048)});
  EXPECT_NEAR(both.gflops.value_or(0), 60e3, 1);
  EXPECT_NEAR(both.gbytes_per_s.value_or(0), 4e3, 0.1);
  for (const auto& problems : {std::vector<Problem>{deep}, {flat}, {}, {packed_problem(4, 4, 4), flat}}) {
    const Roofs unknown = roofs(problems);
    EXPECT_FALSE(unknown.gflops && unknown.gbytes_per_s) << problems.size();
  }
}

TEST(HtmlReportProgram, WritesWholePagesOrNothing) {
  const std::string program = std::string(GEMM_TOOLS_DIR) + "/gemm-inspect";
  if (!std::ifstream(program)) GTEST_SKIP() << program << " was not built";
  const test::TemporaryFolder folder;
  save_table(sample_table(), folder.file("t.json")).value_or_throw();
  std::ofstream(folder.file("b.csv")) << bench_csv_header()
                                      << bench_csv_row(bench_row("small", packed_problem(64, 64, 64), 2, 3));
  std::ofstream(folder.file("broken.json")) << "{";
  std::ofstream(folder.file("kept.html")) << "as it was";
  std::filesystem::create_directory(folder.file("folder.html"));
  std::filesystem::create_symlink("t.json", folder.file("link.json"));
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  struct Case {
    const char* arguments;
    int exit_code;
    const char* message;
  };
  for (const Case& c : {Case{"--help", 0, "--html"},
                        Case{"t.json --html new.html", 0, "new.html written"},
                        {"t.json --html new.html --bench b.csv", 0, "new.html written"},
                        {"broken.json --html kept.html", 1, "broken.json"},
                        {"missing.json --html kept.html", 1, "missing.json"},
                        {"b.csv --html kept.html", 1, "b.csv"},
                        {"t.json --html kept.html --bench missing.csv", 1, "missing.csv"},
                        {"t.json --html kept.html --bench t.json", 1, "t.json, line 1: the header has no column"},
                        {"t.json --html kept.html --bench b.csv --shape 1,2,3", 2, "--shape"},
                        {"t.json --bench b.csv", 2, "--html"},
                        {"t.json --html", 2, "--html"},
                        {"t.json --html ''", 1, "cannot write ''"},
                        {"t.json --html ./t.json", 2, "would write over './t.json'"},
                        {"t.json --html link.json", 2, "would write over 'link.json'"},
                        {"t.json --html b.csv --bench b.csv", 2, "would write over 'b.csv'"},
                        {"t.json --html pipe", 1, "cannot write 'pipe': not a regular file"},
                        {"t.json --html folder.html", 1, "cannot write 'folder.html'"},
                        {"t.json --html no/such/page.html", 1, "cannot write 'no/such/page.html'"}}) {
    const test::CommandResult result = test::run_command("cd '" + folder.path() + "' && '" + program + "' " + c.arguments);
    EXPECT_EQ(result.exit_code, c.exit_code) << c.arguments << "\n" << result.output;
    EXPECT_NE(result.output.find(c.message), std::string::npos) << c.arguments << "\n" << result.output;
  }
  const auto content = [&](const char* name) { return test::text_of(folder.file(name)); };
  EXPECT_EQ(content("kept.html"), "as it was");
  expect_parts(content("new.html"), {"Sample GPU", "<dd>b.csv</dd>", "<td>small</td>", "</html>"});
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 8) << "no temporary file is left";
}

}  // namespace
}  // namespace gemm
