#include "tuner/bundle_writer.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>

#include "dispatch/bundle.h"
#include "kernels/cubin_cache.h"
#include "kernels/file_io.h"
#include "tuner/formatted.h"
#include "tuner/progress.h"

namespace gemm {
namespace {

// For people's estimates, of configs/nvidia-h200.json with NVRTC 13.0: 0.45 s of a core's time on average, up to 1.5 s where
// 16 compile at a time; 26.8 MB for 551 kernels.
constexpr double kSecondsPerKernel = 1.0;
constexpr double kMegabytesPerKernel = 0.049;

constexpr auto kTerminalInterval = std::chrono::milliseconds(200);
constexpr auto kPlainInterval = std::chrono::seconds(15);

// Compiles all kernels with a few threads while the calling one shows how far they are.
class ParallelCompiler {
 public:
  ParallelCompiler(const std::vector<KernelSpec>& specs, int compute_capability)
      : specs_(specs), compute_capability_(compute_capability), kernels_(specs.size()) {}

  std::vector<BundledKernel> run(int thread_count, bool terminal) {
    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(thread_count));
    running_ = thread_count;
    for (int i = 0; i < thread_count; ++i) threads.emplace_back([this] { work(); });
    show_until_done(terminal);
    for (std::thread& thread : threads) thread.join();
    if (!failure_.empty()) throw Error(failure_);
    return std::move(kernels_);
  }

 private:
  void work() {
    for (size_t at = next_++; at < specs_.size() && !failed_; at = next_++) {
      Result<Cubin> cubin = compile(specs_[at]);
      const std::lock_guard lock(mutex_);
      if (cubin) {
        kernels_[at] = {specs_[at].name, CubinStore::key_of(specs_[at]), std::move(*cubin)};
        ++done_;
      } else if (!failed_.exchange(true)) {
        failure_ = cubin.error();
      }
    }
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  Result<Cubin> compile(const KernelSpec& spec) const {
    const Result<std::string> key = compile_key(spec, compute_capability_);
    if (!key) return Failure{key.error()};
    return shared_cubin_cache().get(*key, [&] { return compile_kernel(spec, compute_capability_); });
  }

  void show_until_done(bool terminal) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, terminal ? kTerminalInterval : std::chrono::milliseconds(kPlainInterval),
                              [this] { return running_ == 0; }))
      std::fprintf(stderr, terminal ? "\r\033[K%s" : "%s\n", line().c_str());
    if (terminal) std::fputs("\r\033[K", stderr);
  }

  std::string line() const {
    std::string text = formatted("[%zu/%zu] kernels compiled", done_, specs_.size());
    if (done_ == 0) return text;
    const double elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    return text + ", about " +
           duration_text(elapsed_s / static_cast<double>(done_) * static_cast<double>(specs_.size() - done_)) + " left";
  }

  const std::vector<KernelSpec>& specs_;
  int compute_capability_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<BundledKernel> kernels_;
  size_t done_ = 0;
  int running_ = 0;
  std::string failure_;
};

Table table_to_bundle(const std::string& path) {
  std::vector<std::string> warnings;
  Table table = load_table(path, &warnings).value_or_throw();
  for (const std::string& warning : warnings) std::fprintf(stderr, "%s: %s\n", path.c_str(), warning.c_str());
  if (table.portfolio.empty()) throw Error("table '" + path + "' has no kernels to bundle");
  return table;
}

// PTX would be compiled on the target, by the driver: no bundle's purpose.
std::string machine_code_arch(const DeviceInfo& device) {
  const CompileTarget target = target_for(device.limits.compute_capability).value_or_throw();
  if (target.is_ptx)
    throw Error("NVRTC " + nvrtc_version() + " makes no machine code for " + device.name + "; install a newer CUDA toolkit");
  return target.arch;
}

// Before minutes of compiling.
void check_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
    throw Error("cannot write bundle '" + path + "': " + std::strerror(errno));
}

}  // namespace

std::vector<BundledKernel> compile_kernels(const std::vector<KernelSpec>& specs, int compute_capability, int threads,
                                           bool terminal) {
  return ParallelCompiler(specs, compute_capability).run(threads, terminal);
}

void write_bundle_file(const BundleOptions& options) {
  const Table table = table_to_bundle(options.table_path);
  const std::vector<KernelSpec> specs = bundle_kernels(table, options.kernels);
  const auto count = static_cast<double>(specs.size());
  const std::string arch = machine_code_arch(table.device);
  std::fprintf(
      stderr, "%zu kernels for %s (%s): about %s with %d threads, less where they are in the cache; about %.0f MB\n",
      specs.size(), table.device.name.c_str(), arch.c_str(),
      duration_text(kSecondsPerKernel * count / options.threads).c_str(), options.threads, kMegabytesPerKernel * count);
  if (options.dry_run) return;
  check_folder_of(options.output_path);

  const std::vector<BundledKernel> kernels =
      compile_kernels(specs, table.device.limits.compute_capability, options.threads, options.terminal);
  const std::string bundle = write_bundle(table, kernels, GEMM_VERSION, nvrtc_version());
  if (const Result<bool> written = replace_file(options.output_path, bundle); !written)
    throw Error("cannot write bundle '" + options.output_path + "': " + written.error());
  std::fprintf(stderr, "%s: %zu kernels and %zu points, %.1f MB\n", options.output_path.c_str(), kernels.size(),
               table.points.size(), static_cast<double>(bundle.size()) / 1e6);
}

}  // namespace gemm
