// gemm-inspect: what a table holds, as text or as a page, and why a shape gets its kernel.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "dispatch/bundle.h"
#include "gemm/gemm.h"
#include "kernels/file_io.h"
#include "tuner/bench_csv.h"
#include "tuner/html_report.h"
#include "tuner/inspect_report.h"

#include "program.h"

namespace gemm {
namespace {

// Warnings that are told; a table with more of them is damaged as a whole.
constexpr size_t kMostWarnings = 20;

Table load(const std::string& path, std::vector<std::string>& warnings) {
  LoadedTable loaded = load_table_or_bundle(path, &warnings).value_or_throw();
  for (size_t i = 0; i < std::min(warnings.size(), kMostWarnings); ++i)
    std::fprintf(stderr, "gemm-inspect: warning: %s\n", warnings[i].c_str());
  if (warnings.size() > kMostWarnings)
    std::fprintf(stderr, "gemm-inspect: and %zu warnings more\n", warnings.size() - kMostWarnings);
  if (loaded.kernels)
    print("bundle with " + std::to_string(loaded.kernels->size()) + " kernels compiled for " + loaded.kernels->arch() +
          "\n");
  return std::move(loaded.table);
}

void write_html(const ReportInput& input, const std::string& path) {
  const Result<bool> written = replace_file(path, html_report(input));
  if (!written) throw Error("cannot write '" + path + "': " + written.error());
  print(path + " written\n");
}

int run(int argc, char** argv) {
  CLI::App app("Shows what a tuning table holds, as text or as a page with plots, or explains one shape.", "gemm-inspect");
  app.set_version_flag("--version", gemm_version());
  std::string path, shape, html_path, bench_path;
  app.add_option("table", path, "table to read, for example configs/nvidia-h200.json")->required();
  app.add_option("--shape", shape, "explain this problem: m,n,k[,ops[,batch]], for example 4096,16,4096,TN");
  auto* html = app.add_option("--html", html_path, "write a page with plots and sortable tables to this file instead")
                   ->excludes("--shape");
  auto* with_bench =
      app.add_option("--bench", bench_path, "with --html: also show this CSV file of gemm-bench")->needs(html);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  Result<Problem> problem = packed_problem(1, 1, 1);
  if (!shape.empty() && !(problem = problem_from_text(shape)).ok()) {
    std::fprintf(stderr, "gemm-inspect: %s\n", problem.error().c_str());
    return 2;
  }
  if (html->count() > 0 && (same_file(html_path, path) || same_file(html_path, bench_path))) {
    std::fprintf(stderr, "gemm-inspect: --html would write over '%s', which is to be read\n", html_path.c_str());
    return 2;
  }
  std::vector<BenchRow> bench;
  if (with_bench->count() > 0) bench = read_bench_csv(bench_path).value_or_throw();
  std::vector<std::string> warnings;
  const Table table = load(path, warnings);
  if (html->count() > 0)
    write_html({table, path, warnings, bench, bench_path}, html_path);
  else if (shape.empty())
    print(inspect_header(table) + "\n" + inspect_portfolio(table) + "\n" + inspect_selector(table) + "\n" +
          inspect_points(table));
  else
    print(inspect_shape(table, path, *problem));
  return 0;
}

}  // namespace
}  // namespace gemm

int main(int argc, char** argv) { return gemm::run_program("gemm-inspect", gemm::run, argc, argv); }
