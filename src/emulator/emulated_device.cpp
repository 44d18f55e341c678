#include "emulator/emulated_device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <sstream>
#include <thread>

#include "emulator/emulated_configs.h"
#include "emulator/emulated_tensor_map.h"
#include "emulator/executor.h"
#include "emulator/host_kernels.h"

namespace gemm {
namespace {

constexpr size_t kAlignment = 256;           // of cudaMalloc
constexpr int64_t kMemoryBytes = 1ll << 30;  // of the emulated GPU: enough for tests, little for the host

// Aligned as the strictest argument struct.
struct alignas(TmaTileArgs) AlignedBytes {
  char bytes[alignof(TmaTileArgs)];
};

class EmulatedKernel final : public Kernel {
 public:
  EmulatedKernel(std::string name, HostKernel run, FaultKind fault) : name_(std::move(name)), run_(run), fault_(fault) {}
  // The host compiler's registers say nothing about a GPU's, so none are reported.
  Resources resources() const override { return {}; }
  const std::string& name() const { return name_; }
  HostKernel run() const { return run_; }
  FaultKind fault() const { return fault_; }

 private:
  std::string name_;
  HostKernel run_;
  FaultKind fault_;
};

struct FaultName {
  const char* name;
  FaultKind kind;
};
constexpr FaultName kFaultNames[] = {
    {"launch_refused", FaultKind::launch_refused}, {"hang", FaultKind::hang},
    {"hang_in_turns", FaultKind::hang_in_turns},   {"crash", FaultKind::crash},
    {"writes_nan", FaultKind::writes_nan},         {"skips_last_tile", FaultKind::skips_last_tile}};

std::vector<Fault> faults_from(const char* text) {
  std::vector<Fault> faults;
  if (text == nullptr) return faults;
  std::istringstream list(text);
  for (std::string item; std::getline(list, item, ',');) {
    const size_t equals = item.rfind('=');
    const std::string kind = equals == std::string::npos ? "" : item.substr(equals + 1);
    const auto* known =
        std::find_if(std::begin(kFaultNames), std::end(kFaultNames), [&](const FaultName& f) { return kind == f.name; });
    if (known == std::end(kFaultNames))
      throw Error("GEMM_EMULATOR_FAULTS: '" + item + "' is not NAME_PART=FAULT with a known fault");
    faults.push_back({item.substr(0, equals), known->kind});
  }
  return faults;
}

[[noreturn]] void hang() {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

class EmulatedDevice final : public Device {
 public:
  explicit EmulatedDevice(EmulatorOptions options) : options_(std::move(options)) { options_.info.emulated = true; }

  const DeviceInfo& info() const override { return options_.info; }

  Result<std::shared_ptr<Kernel>> build(const KernelSpec& spec) override {
    const HostKernel run = find_host_kernel(spec.function);
    if (run == nullptr)
      return Failure{"the emulated device has no host instance of " + spec.name + " (docs/design.md lists them)"};
    return std::shared_ptr<Kernel>(std::make_shared<EmulatedKernel>(spec.name, run, fault_of(spec.name)));
  }

  Result<Buffer> allocate(size_t bytes) override {
    if (static_cast<int64_t>(bytes) > free_bytes())
      return Failure{"out of emulated device memory: " + std::to_string(bytes) + " bytes asked, " +
                     std::to_string(free_bytes()) + " free"};
    // Exact size, so that AddressSanitizer sees the first byte past the end.
    void* data = ::operator new(bytes, std::align_val_t(kAlignment), std::nothrow);
    if (data == nullptr)
      return Failure{"out of host memory for " + std::to_string(bytes) + " bytes of emulated device memory"};
    allocated_->fetch_add(static_cast<int64_t>(bytes));
    return Buffer(data, bytes, [bytes, allocated = allocated_](void* p) {
      ::operator delete(p, std::align_val_t(kAlignment));
      allocated->fetch_sub(static_cast<int64_t>(bytes));
    });
  }

  int64_t free_bytes() const override { return options_.info.memory_bytes - allocated_->load(); }

  void copy_to_device(void* device, const void* host, size_t bytes) override {
    if (bytes != 0) std::memcpy(device, host, bytes);
  }
  void copy_to_host(void* host, const void* device, size_t bytes) override {
    if (bytes != 0) std::memcpy(host, device, bytes);
  }
  void set_words(void* device, uint32_t word, size_t count, Stream) override {
    std::fill_n(static_cast<uint32_t*>(device), count, word);
  }

  void set_words_now(void* device, uint32_t word, size_t count) override { set_words(device, word, count, nullptr); }

  // Everything runs at once here: there is nothing to capture, and nothing to wait for.
  uint64_t capture_id(Stream) override { return 0; }
  Result<bool> keep_with_capture(Stream, std::shared_ptr<void>) override {
    return Failure{"the emulated device captures nothing"};
  }
  std::shared_ptr<Marker> make_marker() override { return std::make_shared<Marker>(); }
  void mark(Marker&, Stream) override {}
  void wait_for(const Marker&, Stream) override {}

  Result<TensorMap> encode_tensor_map(const TensorMapSpec& spec) override { return encode_emulated_map(spec); }
  void move_tensor_map(TensorMap& map, const float* data) override { move_emulated_map(map, data); }

  Result<bool> launch(const Kernel& kernel, Grid grid, int threads, int shared_bytes, const void* args, size_t args_bytes,
                      Stream) override {
    const auto& emulated = static_cast<const EmulatedKernel&>(kernel);
    if (const std::string why = why_refused(grid, threads, shared_bytes, emulated.fault()); !why.empty())
      return Failure{"the launch of " + emulated.name() + " was refused: " + why};
    if (emulated.fault() == FaultKind::hang) hang();
    if (emulated.fault() == FaultKind::crash) std::abort();
    // A copy, as a launch makes one: the caller may change its struct at once.
    const auto copy = std::make_unique<AlignedBytes[]>(args_bytes / sizeof(AlignedBytes) + 1);
    std::memcpy(copy.get(), args, args_bytes);
    GridRun run;
    run.thread_body = [&emulated, &copy] { emulated.run()(copy.get()); };
    run.grid = grid;
    run.threads = threads;
    run.shared_bytes = shared_bytes;
    run.order = options_.block_order;
    run.late_warp = options_.late_warp;
    run.skip_last_block = emulated.fault() == FaultKind::skips_last_tile;
    run_grid(run);
    if (emulated.fault() == FaultKind::writes_nan && (args_bytes == sizeof(TileArgs) || args_bytes == sizeof(TmaTileArgs)))
      *reinterpret_cast<const TileArgs*>(copy.get())->c = std::numeric_limits<float>::quiet_NaN();
    return true;
  }

  void synchronize(Stream) override {}

  std::vector<std::vector<double>> measure(const std::vector<Workload>& workloads, const MeasurePlan& plan) override {
    std::vector<std::vector<double>> times;
    times.reserve(workloads.size());
    for (const Workload& workload : workloads) {
      if (workload.on_sample) workload.on_sample();
      if (workloads.size() > 1 && fault_of(workload.label) == FaultKind::hang_in_turns) hang();
      times.emplace_back(static_cast<size_t>(plan.rounds), workload.modelled_us);
    }
    return times;
  }

 private:
  FaultKind fault_of(const std::string& name) const {
    for (const Fault& fault : options_.faults)
      if (name.find(fault.name_part) != std::string::npos) return fault.kind;
    return FaultKind::none;
  }

  std::string why_refused(Grid grid, int threads, int shared_bytes, FaultKind fault) const {
    if (fault == FaultKind::launch_refused) return "injected fault";
    if (threads < 1 || threads > 1024) return std::to_string(threads) + " threads per block";
    if (shared_bytes > options_.info.limits.shared_bytes_per_block)
      return std::to_string(shared_bytes) + " bytes of shared memory";
    if (grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
      return "grid " + std::to_string(grid.x) + "x" + std::to_string(grid.y) + "x" + std::to_string(grid.z);
    if (grid.cluster_y < 1 || grid.cluster_y > kMostPerCluster || grid.y % grid.cluster_y != 0)
      return "clusters of " + std::to_string(grid.cluster_y) + " in " + std::to_string(grid.y) + " blocks";
    return {};
  }

  EmulatorOptions options_;
  std::shared_ptr<std::atomic<int64_t>> allocated_ = std::make_shared<std::atomic<int64_t>>(0);
};

}  // namespace

EmulatorOptions default_emulator_options() {
  EmulatorOptions options;
  DeviceInfo& info = options.info;
  info.name = "Emulated GPU";
  info.emulated = true;
  info.sm_count = 132;
  info.memory_bytes = kMemoryBytes;
  info.l2_bytes = 60ll << 20;
  info.sm_clock_mhz = 1980;
  info.driver = "none";
  info.cuda_runtime = "none";
  options.faults = faults_from(std::getenv("GEMM_EMULATOR_FAULTS"));
  return options;
}

std::unique_ptr<Device> make_emulated_device(EmulatorOptions options) {
  return std::make_unique<EmulatedDevice>(std::move(options));
}

const std::vector<KernelConfig>& emulated_configs() {
  static const std::vector<KernelConfig> configs(std::begin(kEmulatedConfigs), std::end(kEmulatedConfigs));
  return configs;
}

}  // namespace gemm
