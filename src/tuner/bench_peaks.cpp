#include "tuner/bench_peaks.h"

#include <algorithm>

#include "kernels/peaks.h"
#include "tuner/statistics.h"

namespace gemm {
namespace {

// 2048 threads share 128 lanes, so a round takes about 4096 cycles and a launch half a millisecond: its start does not
// show.
constexpr int kFfmaRounds = 256;
// Source and target each; far beyond any L2.
constexpr int64_t kCopyBytes = int64_t{512} << 20;
constexpr MeasurePlan kHow{.rounds = 15, .min_sample_us = 500, .warmup = 3};

// For the emulated device: 128 lanes per multiprocessor, and the bandwidth that its time model states.
double nominal_flops_per_us(const DeviceInfo& info) { return 256.0 * info.sm_count * info.sm_clock_mhz; }
constexpr double kNominalBytesPerUs = 4.3e6;

double measured_us(Device& device, const char* label, const std::function<Result<bool>(Stream)>& enqueue) {
  Workload workload;
  workload.label = label;
  workload.enqueue = [&](Stream stream, int) { enqueue(stream).value_or_throw(); };
  return summarise(device.measure({workload}, kHow).front()).median;
}

Result<double> measure_ffma(Device& device) {
  const Result<std::shared_ptr<Kernel>> kernel = device.build(ffma_peak_spec());
  if (!kernel) return Failure{kernel.error()};
  const Result<Buffer> out = device.allocate(static_cast<size_t>(ffma_peak_threads(device.info())) * 4);
  if (!out) return Failure{out.error()};
  const double us = measured_us(device, "FFMA peak", [&](Stream stream) {
    return launch_ffma_peak(device, **kernel, out->as<float>(), kFfmaRounds, stream);
  });
  return ffma_peak_flops(device.info(), kFfmaRounds) / us;
}

Result<double> measure_copy(Device& device) {
  const Result<std::shared_ptr<Kernel>> kernel = device.build(copy_peak_spec());
  if (!kernel) return Failure{kernel.error()};
  const int64_t bytes = std::min(kCopyBytes, device.free_bytes() / 8 / 16 * 16);
  const Result<Buffer> from = device.allocate(static_cast<size_t>(bytes));
  if (!from) return Failure{from.error()};
  const Result<Buffer> to = device.allocate(static_cast<size_t>(bytes));
  if (!to) return Failure{to.error()};
  device.set_words(from->as(), 0x3f8ccccd, static_cast<size_t>(bytes) / 4, nullptr);
  device.synchronize(nullptr);
  const double us = measured_us(device, "device copy", [&](Stream stream) {
    return launch_copy_peak(device, **kernel, from->as<float>(), to->as<float>(), bytes, stream);
  });
  return 2.0 * static_cast<double>(bytes) / us;
}

}  // namespace

Result<Peaks> measure_peaks(Device& device) {
  if (device.info().emulated) return Peaks{nominal_flops_per_us(device.info()), kNominalBytesPerUs};
  const Result<double> flops = measure_ffma(device);
  if (!flops) return Failure{"cannot measure the FFMA peak: " + flops.error()};
  const Result<double> bytes = measure_copy(device);
  if (!bytes) return Failure{"cannot measure the copy bandwidth: " + bytes.error()};
  return Peaks{*flops, *bytes};
}

double floor_us(const Peaks& peaks, const Problem& problem) {
  return std::max(problem.flops() / peaks.flops_per_us, problem.bytes() / peaks.bytes_per_us);
}

}  // namespace gemm
