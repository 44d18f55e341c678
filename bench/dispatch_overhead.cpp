// What a call of libdispatch costs on the CPU before the launch: gemm_sgemm on a device whose launches do nothing.
//
//   known      a shape that the thread knows: with plain kernel arguments, with tensor maps, with split k (workspace)
//   threads    the same by several threads with a stream each, on one context
//   remembered a shape that the context knows but the thread has forgotten
//   new        a shape that nobody has seen: selection from the table named on the command line, no compilation
//   choice     selection alone, mean over the 1,100 random problems that a calibration begins with
//
//   dispatch_overhead TABLE.json [Google Benchmark's options]
#include <benchmark/benchmark.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "dispatch/c_api.h"
#include "dispatch/selector.h"
#include "dispatch/table.h"
#include "tuner/calibration_problems.h"

namespace gemm {
namespace {

class NoKernel : public Kernel {
 public:
  Resources resources() const override { return {}; }
};

// A GPU that builds and runs nothing. Memory is the host's.
class NoDevice : public Device {
 public:
  explicit NoDevice(DeviceInfo info) : info_(std::move(info)) {}

  const DeviceInfo& info() const override { return info_; }
  Result<std::shared_ptr<Kernel>> build(const KernelSpec&) override { return kernel_; }
  Result<Buffer> allocate(size_t bytes) override { return Buffer(std::malloc(bytes), bytes, std::free); }
  int64_t free_bytes() const override { return info_.memory_bytes; }
  void copy_to_device(void*, const void*, size_t) override {}
  void copy_to_host(void*, const void*, size_t) override {}
  void set_words(void*, uint32_t, size_t, Stream) override {}
  void set_words_now(void*, uint32_t, size_t) override {}
  uint64_t capture_id(Stream) override { return 0; }
  Result<bool> keep_with_capture(Stream, std::shared_ptr<void>) override { return true; }
  std::shared_ptr<Marker> make_marker() override { return std::make_shared<Marker>(); }
  void mark(Marker&, Stream) override {}
  void wait_for(const Marker&, Stream) override {}
  Result<TensorMap> encode_tensor_map(const TensorMapSpec&) override { return TensorMap{}; }
  void move_tensor_map(TensorMap& map, const float* data) override {
    map.words[0] = reinterpret_cast<unsigned long long>(data);
  }
  Result<bool> launch(const Kernel&, Grid grid, int, int, const void* args, size_t, Stream) override {
    benchmark::DoNotOptimize(grid);
    benchmark::DoNotOptimize(args);
    return true;
  }
  void synchronize(Stream) override {}
  std::vector<std::vector<double>> measure(const std::vector<Workload>&, const MeasurePlan&) override { return {}; }

 private:
  DeviceInfo info_;
  std::shared_ptr<Kernel> kernel_ = std::make_shared<NoKernel>();
};

Table table;  // of the command line

gemm_context_t* make_context_with_table() {
  ContextOptions options;
  options.find_table = false;
  options.warn = [](const std::string& text) { throw std::runtime_error(text); };
  return make_context(std::make_unique<NoDevice>(table.device), options);
}

gemm_context_t* shared_context() {
  static gemm_context_t* context = make_context_with_table();
  return context;
}

void check(gemm_status_t status) {
  if (status != GEMM_SUCCESS) throw std::runtime_error(gemm_last_error());
}

float* const kSomewhere = reinterpret_cast<float*>(0x100000);

void multiply(gemm_context_t* context, uintptr_t stream, int64_t m, int64_t n, int64_t k) {
  const float alpha = 1, beta = 0;
  check(gemm_sgemm(context, reinterpret_cast<gemm_stream_t>(0x5000 + 16 * stream), GEMM_OP_N, GEMM_OP_T, m, n, k, &alpha,
                   kSomewhere, m, kSomewhere, n, &beta, kSomewhere, m));
}

void save_and_load(gemm_context_t* context, const Table& of) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("dispatch-overhead-" + std::to_string(getpid()) + ".json")).string();
  save_table(of, path).value_or_throw();
  check(gemm_load_table(context, path.c_str()));
  std::filesystem::remove(path);
}

// Makes the context serve 512 x 512 x 512 NT with a choice.
void force(gemm_context_t* context, const char* config, int split_k) {
  Table forced;
  forced.device = table.device;
  forced.provenance = table.provenance;
  const KernelConfig kernel = *config_from_id(config);
  forced.portfolio = {{config, kernel, 100, 0, worst_shared_bytes(kernel), kernel.threads(), {}, {}}};
  TablePoint point;
  point.problem = packed_problem(512, 512, 512, Op::N, Op::T);
  point.kernel = config;
  point.split_k = split_k;
  point.time_us = {10, 9, 11, 20};
  point.tflops = 1;
  forced.points = {point};
  save_and_load(context, forced);
}

void known(benchmark::State& state, const char* config, int split_k) {
  gemm_context_t* context = shared_context();
  if (state.thread_index() == 0) force(context, config, split_k);
  const auto stream = static_cast<uintptr_t>(state.thread_index());
  for (auto _ : state) multiply(context, stream, 512, 512, 512);
}

// More shapes than a thread remembers, of which each call meets another one.
void remembered(benchmark::State& state) {
  gemm_context_t* context = shared_context();
  force(context, "tile_64x64x8_w32x32_t8x4x1_s2_k1_b1_register_staged_rows_plain", 1);
  constexpr int64_t kShapes = 3000;
  for (int64_t m = 1; m <= kShapes; ++m) multiply(context, 0, m, 64, 64);
  int64_t m = 0;
  for (auto _ : state) multiply(context, 0, ++m > kShapes ? m = 1 : m, 64, 64);
}

void new_shape(benchmark::State& state) {
  gemm_context_t* context = make_context_with_table();
  save_and_load(context, table);
  int64_t m = 0;
  for (auto _ : state) multiply(context, 0, 100 + ++m, 700, 900);
  gemm_destroy(context);
}

constexpr size_t kRandomProblems = 1100;

void choice(benchmark::State& state) {
  const std::vector<CalibrationProblem> problems = calibration_problems(kRandomProblems, false);
  const Selector selector(&table, table.device);
  size_t next = 0;
  for (auto _ : state) {
    const Decision decision = selector.choose(problems[next].problem, kWorkspaceBytes);
    benchmark::DoNotOptimize(decision.candidates.data());
    next = next + 1 < problems.size() ? next + 1 : 0;
  }
}

constexpr const char* kPlain = "tile_64x64x8_w32x32_t8x4x1_s2_k1_b1_register_staged_rows_plain";
constexpr const char* kWithMaps = "tile_128x128x16_w64x64_t4x4x2_s4_k1_b2_warp_specialized_columns_shifted";

BENCHMARK_CAPTURE(known, plain, kPlain, 1)->Threads(1)->Threads(2);
BENCHMARK_CAPTURE(known, tensor_maps, kWithMaps, 1)->Threads(1)->Threads(2);
BENCHMARK_CAPTURE(known, split_k, kPlain, 4)->Threads(1)->Threads(2);
BENCHMARK(remembered);
// Fewer than the plans that a context remembers.
BENCHMARK(new_shape)->Iterations(3000);
// Each problem as often as each other.
BENCHMARK(choice)->Iterations(20 * kRandomProblems);

}  // namespace
}  // namespace gemm

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: dispatch_overhead TABLE.json [Google Benchmark's options]\n");
    return 2;
  }
  gemm::Result<gemm::Table> loaded = gemm::load_table(argv[1], nullptr);
  if (!loaded) {
    std::fprintf(stderr, "%s\n", loaded.error().c_str());
    return 1;
  }
  gemm::table = *loaded;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
