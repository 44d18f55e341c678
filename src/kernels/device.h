// The device behind everything: a CUDA GPU, or the emulated device that runs the same kernel sources on the host.
//
// Units: bytes where a name says so, microseconds for times. Failures that a caller can act on are Results; CUDA errors
// that mean a broken context are Errors (exceptions).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernel_args.h"
#include "kernels/kernel_config.h"
#include "kernels/kernel_spec.h"
#include "kernels/result.h"

namespace gemm {

struct DeviceInfo {
  std::string name;       // "NVIDIA H200"
  std::string uuid;       // "GPU-…", empty for the emulated device
  bool emulated = false;  // its times are modelled
  int index = 0;          // CUDA device ordinal
  int sm_count = 0;
  int64_t memory_bytes = 0;  // total
  int64_t l2_bytes = 0;
  int sm_clock_mhz = 0;      // maximum
  std::string driver;        // "580.159.04", or "none"
  std::string cuda_runtime;  // "13.0"
  DeviceLimits limits;

  std::string slug() const;  // "nvidia-h200": lower case, one '-' for every run of other characters
  const char* provenance() const { return emulated ? "modelled" : "measured"; }
};

// A compiled kernel that is ready to launch. Owned by shared_ptr; stays valid as long as it or its device lives.
class Kernel {
 public:
  virtual ~Kernel() = default;
  struct Resources {
    int registers = 0;    // per thread
    int spill_bytes = 0;  // local memory per thread
    int static_shared_bytes = 0;
  };
  virtual Resources resources() const = 0;
};

// Device memory that frees itself.
class Buffer {
 public:
  Buffer() = default;
  Buffer(void* data, size_t bytes, std::function<void(void*)> free) : data_(data, std::move(free)), bytes_(bytes) {}
  template <class T = void>
  T* as() const {
    return static_cast<T*>(data_.get());
  }
  size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<void> data_;
  size_t bytes_ = 0;
};

// A CUDA stream (cudaStream_t) or nullptr for the default stream. The emulated device runs everything at once.
using Stream = void*;

// A place in the work of a stream that other streams can wait for (a CUDA event).
class Marker {
 public:
  virtual ~Marker() = default;
};

// An operand for the tensor copy engine: `lines` lines of `length` contiguous floats, `ld` apart, of each of `batch`
// matrices `stride` apart. Copies take boxes of box_lines x box_length floats; what lies outside the operand arrives as
// zeros. Data, ld and stride are multiples of 16 bytes.
struct TensorMapSpec {
  const float* data = nullptr;
  int64_t length = 0, lines = 0, batch = 1;
  int64_t ld = 0, stride = 0;
  int box_length = 0, box_lines = 0;
  int swizzle_bytes = 0;  // 0, 64 or 128: length of a box's lines whose 16-byte pieces are swizzled (tma_tile.cuh)

  friend bool operator==(const TensorMapSpec&, const TensorMapSpec&) = default;
};

struct Grid {
  unsigned x = 1, y = 1, z = 1;
  unsigned cluster_y = 1;  // neighbours along y that form a thread-block cluster (sm_90+); divides y
  // May be launched while its predecessor on the stream still runs (sm_90+); the kernel itself waits for the predecessor's
  // memory, so this changes times only.
  bool overlaps_predecessor = true;
};

class CubinStore;

// Something whose time is measured: enqueues one execution on `stream` with operand set number `rotation` (it takes it
// modulo the sets it has). The emulated device does not run it but reports `modelled_us`.
struct Workload {
  std::string label;
  std::function<void(Stream stream, int rotation)> enqueue;
  double modelled_us = 0;
  std::function<void()> on_sample{};  // called before its warm-up and before each sample, outside what is timed
};

// How long and how often to measure. All workloads are interleaved, round by round.
struct MeasurePlan {
  int rounds = 3;            // samples per workload
  double min_sample_us = 0;  // a sample repeats the workload until it lasts about this long (0: once); divided by repeats
  bool use_graph = true;     // replay the repeats as one CUDA graph, which takes launch gaps out
  int warmup = 1;            // runs of each workload before the first round
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  // Runs `body` with this device as the calling thread's current one, for libraries that look at it (cuBLAS, cuBLASLt). They
  // may allocate and load meanwhile, also while a stream is being captured.
  virtual void with_current(const std::function<void()>& body) { body(); }

  // Compiles (or takes from the disk cache) and loads. Thread-safe. Failure: compiler log, or no such instance (emulated).
  virtual Result<std::shared_ptr<Kernel>> build(const KernelSpec& spec) = 0;

  // Kernels that `build` looks for first, before the disk cache and the compiler; null for none. They replace those of an
  // earlier call. Thread-safe. The emulated device, whose kernels are compiled into it, ignores them.
  virtual void use_cubins(const std::shared_ptr<const CubinStore>& /*cubins*/) {}

  // Device memory, uninitialised. Failure when there is not enough.
  virtual Result<Buffer> allocate(size_t bytes) = 0;
  virtual int64_t free_bytes() const = 0;

  // Copies are synchronous with the host; set_words fills 32-bit words, asynchronously on `stream`.
  virtual void copy_to_device(void* device, const void* host, size_t bytes) = 0;
  virtual void copy_to_host(void* host, const void* device, size_t bytes) = 0;
  virtual void set_words(void* device, uint32_t word, size_t count, Stream stream) = 0;

  // The same, done when it returns, and by no stream of the caller's: also while streams are being captured.
  virtual void set_words_now(void* device, uint32_t word, size_t count) = 0;

  // The number of the capture that `stream` is part of, unique in the process; 0 where it is not being captured.
  virtual uint64_t capture_id(Stream stream) = 0;
  // Keeps `thing` until the graph that is being captured on `stream`, its copies and its executables are destroyed. Its
  // destructor must not call this device. Failure: nothing is being captured there.
  virtual Result<bool> keep_with_capture(Stream stream, std::shared_ptr<void> thing) = 0;

  // A marker; mark() sets it behind the work that `stream` has got so far, and what wait_for() precedes on a stream runs
  // after that. A marker that was never set is not waited for.
  virtual std::shared_ptr<Marker> make_marker() = 0;
  virtual void mark(Marker& marker, Stream stream) = 0;
  virtual void wait_for(const Marker& marker, Stream stream) = 0;

  // The map of an operand, for kernels that take TmaTileArgs. Failure: this device has no tensor copy engine, or the operand
  // does not suit it. move_tensor_map makes it the map of an equal operand somewhere else.
  virtual Result<TensorMap> encode_tensor_map(const TensorMapSpec& spec) = 0;
  virtual void move_tensor_map(TensorMap& map, const float* data) = 0;

  // Enqueues kernel<<<grid, threads, shared_bytes, stream>>>(args), where args is the one struct argument. Failure: the
  // launch was refused; the error state is cleared, so that it does not stick to later calls.
  virtual Result<bool> launch(const Kernel& kernel, Grid grid, int threads, int shared_bytes, const void* args,
                              size_t args_bytes, Stream stream) = 0;

  // Waits for `stream` (everything when it is nullptr). Throws Error when something that ran on it has failed.
  virtual void synchronize(Stream stream) = 0;

  // Times workloads[i] in interleaved rounds; result[i] holds plan.rounds times in microseconds per execution.
  virtual std::vector<std::vector<double>> measure(const std::vector<Workload>& workloads, const MeasurePlan& plan) = 0;
};

// Opens GPU `index`. Failure: no driver, no such GPU, too old; with what to do.
Result<std::unique_ptr<Device>> open_cuda_device(int index);

// Number of CUDA GPUs, 0 with a reason in *why when there is no driver or no GPU.
int cuda_device_count(std::string* why);

}  // namespace gemm
