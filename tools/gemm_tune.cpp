// gemm-tune: finds the fastest kernels for one GPU and writes its table. Parsing and printing only; src/tuner does the work.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <thread>

#include "emulator/emulated_device.h"
#include "gemm/gemm.h"
#include "kernels/kernel_spec.h"
#include "tuner/bundle_writer.h"
#include "tuner/table_files.h"
#include "tuner/tune_plan.h"
#include "tuner/tuner.h"
#include "tuner/worker.h"

#include "program.h"

namespace {

using gemm::DeviceInfo;
using gemm::SearchSpace;
using gemm::Shape;

constexpr int kUsage = 2;
constexpr int kEmulatedCalibration = 11;  // random problems; checking a kernel there takes long

// The command line, or a file that it names, is wrong.
class UsageError : public gemm::Error {
  using gemm::Error::Error;
};

struct Arguments {
  int gpu = 0;
  bool emulated = false;
  std::vector<std::string> shape_files;
  bool default_shapes = true;
  std::string table_path, space_path;
  double budget_minutes = 0, timeout_s = 20;
  int candidates = 44;
  std::optional<int> calibration;
  bool dry_run = false, list = false, fresh = false;
  int worker_fd = -1;
  std::string bundle_path, bundled_table, bundle_kernels = "aligned";
};

constexpr const char* kDescription =
    "Finds the fastest SGEMM kernels for one GPU: enumerates configurations, compiles the promising ones, verifies every\n"
    "candidate, times it against cuBLAS and cuBLASLt, and writes the table that libdispatch reads.";

constexpr const char* kExamples =
    "Examples:\n"
    "  gemm-tune --gpu 0                          tune the default grid; writes configs/<gpu>.json\n"
    "  gemm-tune --gpu 0 --shapes mine.csv        tune your shapes first, then the default grid\n"
    "  gemm-tune --shapes mine.csv --no-default-shapes -o mine.json --budget 5\n"
    "                                             only your shapes, five minutes at most\n"
    "  gemm-tune --gpu 0 --no-default-shapes -o mine.json\n"
    "                                             only fit and judge the selector of that table again\n"
    "  gemm-tune --dry-run                        what would be done, and how long it would take; needs no GPU\n"
    "  gemm-tune --list | grep -v ok              every configuration that is out, with the reason\n"
    "  gemm-tune --emulated -o /tmp/emulated.json the whole pipeline without a GPU (times are modelled)\n"
    "  gemm-tune --bundle h200.bundle --table configs/nvidia-h200.json\n"
    "                                             the table and its compiled kernels in one file; needs no GPU\n"
    "\n"
    "A shapes file has a header line with the columns m,n,k,transa,transb and, if you like, class, batch and source;\n"
    "lda, ldb and ldc are read and ignored, since tables hold packed problems.\n"
    "Interrupted? Start the same command again: the trial log beside the table (.jsonl) has all finished work.\n"
    "Exit status: 0 done, 1 failed or all shapes skipped, 2 wrong usage, 129, 130 or 143 interrupted.";

// CLI::Range lets NaN pass.
CLI::Validator number_from(double least, double most, const std::string& range) {
  const auto check = [=](const std::string& text) -> std::string {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end != text.c_str() && *end == 0 && value >= least && value <= most) return {};
    return "'" + text + "' is not a number from " + range;
  };
  return {check, "FLOAT in [" + range + "]"};
}

void define(CLI::App& app, Arguments& a) {
  app.description(kDescription);
  app.footer(kExamples);
  app.set_version_flag("--version", gemm_version());
  CLI::Option* gpu =
      app.add_option("--gpu", a.gpu, "Number of the GPU to tune (as nvidia-smi counts)")->check(CLI::Range(0, 1023));
  app.add_flag("--emulated", a.emulated, "Use the emulated device in place of a GPU")->excludes(gpu);
  app.add_option("--shapes", a.shape_files, "CSV file of shapes to tune; may be given several times");
  app.add_flag("--default-shapes,!--no-default-shapes", a.default_shapes,
               "Tune the default grid (after --shapes); on by default");
  app.add_option("-o,--output", a.table_path, "Table to write or to add to [configs/<gpu>.json, or ./<gpu>.json]");
  app.add_option("--space", a.space_path, "Search space to use instead of configs/space.json");
  app.add_option("--budget", a.budget_minutes, "Stop after this many minutes with what is done by then")
      ->check(number_from(0.01, 10080, "0.01 to 10080"));
  app.add_option("--candidates", a.candidates, "Most configurations to compile and time per shape")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--calibration", a.calibration,
                 "Random problems on which the selector is fitted and judged; 0 leaves that out [5000; 11 with --emulated]")
      ->check(CLI::Range(0, 100000));
  app.add_option("--timeout", a.timeout_s, "Seconds after which a candidate counts as hanging")
      ->check(number_from(0.001, 86400, "0.001 to 86400"))
      ->capture_default_str();
  app.add_flag("--fresh", a.fresh, "Measure again what the trial log already has (the old log is kept under a new name)");
  CLI::Option* dry_run = app.add_flag("--dry-run", a.dry_run, "Say what would be done, and do nothing");
  app.add_flag("--list", a.list, "Print every configuration with 'ok' or why it is out, and do nothing")->excludes(dry_run);
  CLI::Option* bundle =
      app.add_option("--bundle", a.bundle_path, "Tune nothing, but pack --table and its compiled kernels into this file");
  CLI::Option* bundled = app.add_option("--table", a.bundled_table, "Table to bundle");
  bundle->needs(bundled);
  bundled->needs(bundle);
  app.add_option("--bundle-kernels", a.bundle_kernels,
                 "Kernels to bundle: 'tuned', what the table's points run; 'aligned', all of the table for 16-byte aligned\n"
                 "matrices; 'all', for other alignments too")
      ->check(CLI::IsMember({"tuned", "aligned", "all"}))
      ->needs(bundle)
      ->capture_default_str();
  app.add_option("--worker", a.worker_fd)->group("");  // how the tuner starts its own worker
}

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

// configs/space.json of the current folder, of the folders around the program (a build), or of the installation.
std::string default_space_path() {
  namespace fs = std::filesystem;
  std::vector<fs::path> places = {"configs/space.json"};
  for (fs::path folder = fs::path(own_path()).parent_path(); folder != folder.root_path(); folder = folder.parent_path()) {
    places.push_back(folder / "configs/space.json");
    places.push_back(folder / "share/gemm/configs/space.json");
  }
  for (const fs::path& place : places)
    if (fs::exists(place)) return place.string();
  throw gemm::Error("cannot find configs/space.json; name the search space with --space");
}

// The contents of a file that the user named.
template <class T>
T named_by_user(gemm::Result<T> contents) {
  if (!contents) throw UsageError(contents.error());
  return std::move(*contents);
}

SearchSpace space_for(const Arguments& a) {
  if (!a.space_path.empty()) return named_by_user(gemm::read_space(a.space_path));
  if (a.emulated) return gemm::space_of(gemm::emulated_configs());
  return gemm::read_space(default_space_path()).value_or_throw();
}

std::vector<Shape> shapes_for(const Arguments& a) {
  std::vector<Shape> shapes;
  for (const std::string& file : a.shape_files) {
    const std::vector<Shape> more = named_by_user(gemm::read_shapes(file));
    shapes.insert(shapes.end(), more.begin(), more.end());
  }
  if (const size_t padded = gemm::pack(shapes); padded > 0)
    std::fprintf(stderr, "%zu shapes with padded leading dimensions are tuned packed, as tables hold them\n", padded);
  if (a.default_shapes) {
    const std::vector<Shape> more = a.emulated ? gemm::emulated_shapes() : gemm::default_shapes();
    shapes.insert(shapes.end(), more.begin(), more.end());
  }
  // A table that is there can be calibrated again.
  const bool calibrates = a.calibration.value_or(1) > 0 && std::filesystem::exists(a.table_path);
  if (shapes.empty() && !calibrates) throw UsageError("no shapes to tune: give --shapes FILE.csv with --no-default-shapes");
  return gemm::without_repeats(shapes);
}

constexpr int64_t kH200MemoryBytes = int64_t{143155} << 20;  // as the driver says

// The device whose limits --list and --dry-run speak of: the GPU where there is one, else the description of an H200.
DeviceInfo described_device(const Arguments& a) {
  DeviceInfo info = gemm::default_emulator_options().info;
  if (a.emulated) return info;
  std::string why = "there is no GPU " + std::to_string(a.gpu);
  if (gemm::cuda_device_count(&why) > a.gpu) {
    gemm::Result<std::unique_ptr<gemm::Device>> device = gemm::open_cuda_device(a.gpu);
    if (device) return (*device)->info();
    why = device.error();
  }
  // The emulator's description is that of an H200, but for its memory.
  info.name = "NVIDIA H200";
  info.memory_bytes = kH200MemoryBytes;
  info.emulated = false;
  std::fprintf(stderr, "no GPU to ask (%s): answering as an H200 would\n", why.c_str());
  return info;
}

int list(const Arguments& a) {
  const SearchSpace space = space_for(a);
  const DeviceInfo device = described_device(a);
  size_t valid = 0, total = 0;
  space.for_each([&](const gemm::KernelConfig& config) {
    const char* why = gemm::why_invalid(config, device.limits);
    ++total;
    valid += why == nullptr;
    std::printf("%s  %s\n", gemm::config_id(config).c_str(), why == nullptr ? "ok" : why);
  });
  std::printf("%zu of %zu combinations can run on %s\n", valid, total, device.name.c_str());
  return 0;
}

int calibration_of(const Arguments& a) {
  return a.calibration.value_or(a.emulated ? kEmulatedCalibration : gemm::TuneOptions{}.calibration);
}

int dry_run(const Arguments& a) {
  const SearchSpace space = space_for(a);
  const std::vector<Shape> shapes = shapes_for(a);
  const DeviceInfo device = described_device(a);
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const std::string table = a.table_path.empty() ? gemm::default_table_path(device) : a.table_path;
  gemm::EvidenceMap done;
  if (!a.fresh) done = gemm::evidence_beside(table, device, gemm::valid_configs(space, device.limits));
  const gemm::TunePlan plan = gemm::plan_tuning(space, shapes, device, a.candidates, calibration_of(a), cores, done);
  if (plan.valid_configs == 0) throw gemm::Error(gemm::no_valid_configs(device));
  std::printf("device          %s, %d SMs\n", device.name.c_str(), device.sm_count);
  std::printf("search space    %zu combinations, %zu valid configurations\n", plan.combinations, plan.valid_configs);
  const std::string done_already =
      plan.shapes_done > 0 ? ", " + std::to_string(plan.shapes_done) + " of them done already" : "";
  std::printf("shapes          %zu%s\n", plan.shapes, done_already.c_str());
  std::printf("candidates      %zu trials of %zu different kernels after pre-ranking\n", plan.candidates, plan.kernels);
  std::printf("estimated time  about %.0f minutes on %d cores\n", std::max(1.0, plan.minutes), cores);
  if (a.budget_minutes > 0 && a.budget_minutes < plan.minutes)
    std::printf("budget          ends it after %g minutes; the same command would go on from there\n", a.budget_minutes);
  std::printf("table           %s\n", table.c_str());
  return 0;
}

int worker(const Arguments& a) {
  const auto open_device = [&]() -> gemm::Result<std::unique_ptr<gemm::Device>> {
    if (a.emulated) return gemm::make_emulated_device();
    gemm::Result<std::unique_ptr<gemm::Device>> device = gemm::open_cuda_device(a.gpu);
    if (!device) return gemm::Failure{device.error() + "; --emulated runs the same pipeline without a GPU"};
    return device;
  };
  gemm::TimeModel model;
  if (a.emulated)
    model = [info = gemm::default_emulator_options().info](const gemm::Choice& choice, const gemm::Problem& problem) {
      return gemm::modelled_time_us(info, choice, problem);
    };
  return gemm::run_worker(a.worker_fd, open_device, model);
}

std::string joined(int count, char** words) {
  std::string text = "gemm-tune";
  for (int i = 1; i < count; ++i) text += std::string(" ") + words[i];
  return text;
}

int tune(const Arguments& a, const std::string& command_line) {
  gemm::TuneOptions options;
  options.worker_command = {own_path()};
  if (a.emulated)
    options.worker_command.push_back("--emulated");
  else
    options.worker_command.insert(options.worker_command.end(), {"--gpu", std::to_string(a.gpu)});
  options.worker_command.push_back("--worker");
  options.shapes = shapes_for(a);
  options.space = space_for(a);
  options.table_path = a.table_path;
  options.budget_minutes = a.budget_minutes;
  options.fresh = a.fresh;
  options.candidates = a.candidates;
  options.calibration = calibration_of(a);
  options.timeout_s = a.timeout_s;
  options.command_line = command_line;
  options.terminal = isatty(STDERR_FILENO) != 0;
  return gemm::tune(options);
}

int bundle(const Arguments& a) {
  if (gemm::same_file(a.bundle_path, a.bundled_table)) throw UsageError("--bundle would overwrite the table");
  gemm::BundleOptions options;
  options.table_path = a.bundled_table;
  options.output_path = a.bundle_path;
  gemm::from_string(a.bundle_kernels, options.kernels);
  options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  options.dry_run = a.dry_run;
  options.terminal = isatty(STDERR_FILENO) != 0;
  gemm::write_bundle_file(options);
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app;
  Arguments arguments;
  define(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (arguments.worker_fd >= 0) return worker(arguments);
  if (!arguments.bundle_path.empty()) return bundle(arguments);
  if (arguments.list) return list(arguments);
  if (arguments.dry_run) return dry_run(arguments);
  return tune(arguments, joined(argc, argv));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const UsageError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
