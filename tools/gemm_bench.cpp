// gemm-bench: the tuned dispatch against cuBLAS, cuBLASLt and the GPU's ceilings.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "dispatch/explain.h"
#include "emulator/emulated_device.h"
#include "gemm/gemm.h"
#include "tuner/bench_ladder.h"
#include "tuner/bench_report.h"
#include "tuner/formatted.h"

#include "program.h"

namespace gemm {
namespace {

struct Options {
  int gpu = 0;
  bool emulated = false, ladder = false;
  std::string shapes, csv, table;
  int rounds = 21;
  int64_t size = 4092;
};

void warn(const std::string& text) { std::fprintf(stderr, "gemm-bench: warning: %s\n", text.c_str()); }

void add_options(CLI::App& app, Options& o) {
  app.set_version_flag("--version", gemm_version());
  app.add_option("--shapes", o.shapes,
                 "CSV file with the columns m,n,k,transa,transb and, where wanted, class,batch,lda,ldb,ldc");
  app.add_option("--gpu", o.gpu, "CUDA device number")->check(CLI::Range(0, 1023))->capture_default_str();
  app.add_flag("--emulated", o.emulated, "use the emulated device; its times are modelled, not measured");
  app.add_option("--table", o.table, "tuning table; default: GEMM_TABLE, configs/<gpu>.json, the installed tables");
  app.add_option("--csv", o.csv, "write the results to this file as well");
  app.add_option("--rounds", o.rounds, "time samples per kernel")->check(CLI::Range(3, 10000))->capture_default_str();
  app.add_flag("--ladder", o.ladder, "time the ladder of simple kernels on a square");
  app.add_option("--size", o.size, "edge of the ladder's square")->check(CLI::Range(1, 65536))->capture_default_str();
}

// The CSV file, opened before anything is measured so that a bad path costs nothing.
class CsvFile {
 public:
  explicit CsvFile(const std::string& path) : path_(path) {
    if (path.empty()) return;
    file_.open(path, std::ios::trunc);
    write(bench_csv_header());
  }
  void write(const std::string& text) {
    if (path_.empty()) return;
    if (!(file_ << text << std::flush)) throw Error("cannot write '" + path_ + "': " + std::strerror(errno));
  }

 private:
  std::string path_;
  std::ofstream file_;
};

std::unique_ptr<Device> open_device(const Options& o) {
  if (o.emulated) return make_emulated_device();
  return open_cuda_device(o.gpu).value_or_throw();
}

std::optional<FoundTable> find_table(const Options& o, const DeviceInfo& device) {
  std::vector<std::string> folders = config_folders();
  folders.insert(folders.begin(), "configs");
  std::vector<std::string> warnings;
  std::optional<FoundTable> found = bench_table(o.table, folders, device, &warnings).value_or_throw();
  for (const std::string& warning : warnings) warn(warning);
  return found;
}

void print_header(const DeviceInfo& device, const std::optional<FoundTable>& found, const Peaks& peaks) {
  print("device     " + device.name + (device.emulated ? ": all times are modelled, none is measured" : "") + "\n");
  print("table      " + (found ? describe_source(found->table, found->path, device) : "none: default kernels") + "\n");
  const char* note = device.emulated ? " (nominal)" : "";
  print(formatted("FFMA peak  %.1f TFLOP/s%s\ncopy       %.2f TB/s%s\n", peaks.flops_per_us / 1e6, note,
                  peaks.bytes_per_us / 1e6, note));
}

// False when a kernel gave a wrong result or nothing could be timed.
bool bench_shapes(BenchContext& context, const Table* table, const Peaks& peaks, const std::vector<Shape>& shapes,
                  int rounds, CsvFile& csv) {
  Bench bench(context, table, peaks, rounds);
  std::vector<BenchRow> rows;
  bool timed = false, wrong = false;
  print("\n" + bench_table_header());
  for (const Shape& shape : shapes) {
    rows.push_back(bench.run(shape));
    print(bench_table_row(rows.back()));
    csv.write(bench_csv_row(rows.back()));
    timed = timed || rows.back().failure.empty();
    wrong = wrong || rows.back().wrong;
  }
  print("\n" + bench_summary(rows));
  return timed && !wrong;
}

bool bench_all(const Options& o) {
  std::vector<Shape> shapes;
  if (!o.shapes.empty()) shapes = read_shapes(o.shapes).value_or_throw();
  const std::unique_ptr<Device> device = open_device(o);
  const DeviceInfo& info = device->info();
  const std::optional<FoundTable> found = find_table(o, info);
  if (found && same_file(found->path, o.csv)) throw Error("--csv would overwrite the table '" + found->path + "'");
  CsvFile csv(o.csv);
  const Table* table = found ? &found->table : nullptr;
  if (found) device->use_cubins(found->kernels);
  const Peaks peaks = measure_peaks(*device).value_or_throw();
  print_header(info, found, peaks);
  TimeModel model;
  if (info.emulated)
    model = [&info](const Choice& choice, const Problem& problem) { return modelled_time_us(info, choice, problem); };
  const std::unique_ptr<BenchContext> context = BenchContext::create(*device, model).value_or_throw();
  if (!context->baselines.missing.empty()) warn(context->baselines.missing);
  if (o.ladder) print("\n" + ladder_report(time_ladder(*context, table, o.size, o.rounds).value_or_throw(), o.size));
  return shapes.empty() || bench_shapes(*context, table, peaks, shapes, o.rounds, csv);
}

int run(int argc, char** argv) {
  CLI::App app("Times the tuned dispatch against cuBLAS and the best of cuBLASLt's heuristics.", "gemm-bench");
  Options options;
  add_options(app, options);
  try {
    app.parse(argc, argv);
    if (options.shapes.empty() && !options.ladder) throw CLI::RequiredError("--shapes FILE or --ladder");
    if (options.shapes.empty() && !options.csv.empty()) throw CLI::RequiresError("--csv", "--shapes");
    if (same_file(options.shapes, options.csv)) throw CLI::ValidationError("--csv", "would overwrite the shapes file");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return bench_all(options) ? 0 : 1;
}

}  // namespace
}  // namespace gemm

int main(int argc, char** argv) { return gemm::run_program("gemm-bench", gemm::run, argc, argv); }
