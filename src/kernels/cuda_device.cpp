// The CUDA device: kernels compiled by NVRTC, kept in the cubin cache, loaded and launched by the CUDA Runtime API.

#include <cuda_runtime_api.h>

#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "kernels/cubin_cache.h"
#include "kernels/cubin_store.h"
#include "kernels/cuda_capture.h"
#include "kernels/cuda_context.h"
#include "kernels/cuda_device_info.h"
#include "kernels/cuda_device_timer.h"
#include "kernels/cuda_tensor_map.h"
#include "kernels/device.h"
#include "kernels/nvrtc_compiler.h"

namespace gemm {
namespace {

// From here on a kernel may be launched while its predecessor still runs, and waits for it by itself
// (begin_after_predecessors in device/platform.cuh): that hides 0.3 to 0.6 us of each launch (docs/performance.md).
constexpr int kProgrammaticLaunch = 90;

// A loaded library with one kernel. cudaLibrary_t belongs to no context: it serves the GPU across device resets.
class CudaKernel : public Kernel {
 public:
  // Failure: the driver does not take the image.
  static Result<std::shared_ptr<CudaKernel>> load(std::shared_ptr<CudaContext> context, const Cubin& cubin,
                                                  int shared_limit) {
    auto kernel = std::make_shared<CudaKernel>(std::move(context));
    if (const cudaError_t error = kernel->load_image(cubin, shared_limit); error != cudaSuccess) {
      cudaGetLastError();
      return Failure{describe(error)};
    }
    return kernel;
  }

  explicit CudaKernel(std::shared_ptr<CudaContext> context) : context_(std::move(context)) {}
  ~CudaKernel() override {
    if (library_) release_quietly(*context_, [&] { cudaLibraryUnload(library_); });
  }
  CudaKernel(const CudaKernel&) = delete;
  CudaKernel& operator=(const CudaKernel&) = delete;

  Resources resources() const override { return resources_; }
  const void* function() const { return reinterpret_cast<const void*>(kernel_); }

 private:
  cudaError_t load_image(const Cubin& cubin, int shared_limit) {
    cudaFuncAttributes attributes{};
    cudaError_t error = cudaLibraryLoadData(&library_, cubin.image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (error == cudaSuccess) error = cudaLibraryGetKernel(&kernel_, library_, kEntryName);
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, function());
    if (error != cudaSuccess) return error;
    resources_.registers = attributes.numRegs;
    resources_.spill_bytes = static_cast<int>(attributes.localSizeBytes);
    resources_.static_shared_bytes = static_cast<int>(attributes.sharedSizeBytes);
    // Without this a launch is refused from 48 KB on. It is a limit only: what a launch uses decides the L1 cache's size.
    const int dynamic_limit = shared_limit - resources_.static_shared_bytes;
    return cudaFuncSetAttribute(function(), cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic_limit);
  }

  std::shared_ptr<CudaContext> context_;
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
  Resources resources_;
};

class CudaMarker : public Marker {
 public:
  explicit CudaMarker(std::shared_ptr<CudaContext> context) : context_(std::move(context)) {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "creating an event");
  }
  ~CudaMarker() override {
    release_quietly(*context_, [&] { cudaEventDestroy(event_); });
  }
  CudaMarker(const CudaMarker&) = delete;
  CudaMarker& operator=(const CudaMarker&) = delete;

  cudaEvent_t event() const { return event_; }

 private:
  std::shared_ptr<CudaContext> context_;
  cudaEvent_t event_ = nullptr;
};

class CudaDevice : public Device {
 public:
  CudaDevice(DeviceInfo info, std::shared_ptr<CudaContext> context) : info_(std::move(info)), context_(std::move(context)) {}
  ~CudaDevice() override {
    release_quietly(*context_, [&] {
      timer_.reset();
      if (own_stream_) cudaStreamDestroy(own_stream_);
    });
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const DeviceInfo& info() const override { return info_; }
  void with_current(const std::function<void()>& body) override {
    const CurrentContext current(*context_);
    const CaptureTolerance tolerance;
    body();
  }
  Result<std::shared_ptr<Kernel>> build(const KernelSpec& spec) override;
  void use_cubins(const std::shared_ptr<const CubinStore>& cubins) override {
    const std::lock_guard lock(kernels_mutex_);
    cubins_ = cubins;
  }
  Result<Buffer> allocate(size_t bytes) override;
  int64_t free_bytes() const override;
  void copy_to_device(void* device, const void* host, size_t bytes) override;
  void copy_to_host(void* host, const void* device, size_t bytes) override;
  void set_words(void* device, uint32_t word, size_t count, Stream stream) override;
  void set_words_now(void* device, uint32_t word, size_t count) override;
  uint64_t capture_id(Stream stream) override {
    const CurrentContext current(*context_);
    return cuda_capture_id(static_cast<cudaStream_t>(stream));
  }
  Result<bool> keep_with_capture(Stream stream, std::shared_ptr<void> thing) override {
    const CurrentContext current(*context_);
    return keep_with_cuda_capture(static_cast<cudaStream_t>(stream), std::move(thing));
  }
  std::shared_ptr<Marker> make_marker() override {
    const CurrentContext current(*context_);
    return std::make_shared<CudaMarker>(context_);
  }
  void mark(Marker& marker, Stream stream) override;
  void wait_for(const Marker& marker, Stream stream) override;
  Result<TensorMap> encode_tensor_map(const TensorMapSpec& spec) override {
    const CaptureTolerance tolerance;
    return encode_cuda_map(spec);
  }
  void move_tensor_map(TensorMap& map, const float* data) override { move_cuda_map(map, data); }
  Result<bool> launch(const Kernel& kernel, Grid grid, int threads, int shared_bytes, const void* args, size_t args_bytes,
                      Stream stream) override;
  void synchronize(Stream stream) override;
  std::vector<std::vector<double>> measure(const std::vector<Workload>& workloads, const MeasurePlan& plan) override;

 private:
  std::shared_ptr<Kernel> loaded(const std::string& source);
  Result<std::shared_ptr<CudaKernel>> load(const Cubin& cubin);
  std::shared_ptr<CudaKernel> load_stored(const KernelSpec& spec);
  Result<std::shared_ptr<CudaKernel>> compile_and_load(const KernelSpec& spec);

  DeviceInfo info_;
  std::shared_ptr<CudaContext> context_;
  std::mutex kernels_mutex_;
  std::map<std::string, std::weak_ptr<Kernel>> kernels_;  // by source: what someone still holds is not loaded twice
  std::shared_ptr<const CubinStore> cubins_;
  std::mutex own_stream_mutex_;
  cudaStream_t own_stream_ = nullptr;  // for set_words_now, created on first need
  std::mutex timer_mutex_;
  std::unique_ptr<CudaDeviceTimer> timer_;
};

std::shared_ptr<Kernel> CudaDevice::loaded(const std::string& source) {
  const std::lock_guard lock(kernels_mutex_);
  const auto found = kernels_.find(source);
  return found == kernels_.end() ? nullptr : found->second.lock();
}

Result<std::shared_ptr<Kernel>> CudaDevice::build(const KernelSpec& spec) {
  const std::string source = source_of(spec);
  if (std::shared_ptr<Kernel> kernel = loaded(source)) return kernel;
  Result<std::shared_ptr<CudaKernel>> built(load_stored(spec));
  if (!*built) built = compile_and_load(spec);
  if (!built) return Failure{built.error()};

  const std::lock_guard lock(kernels_mutex_);
  // Another thread may have built the same kernel meanwhile; the first one is kept.
  if (const auto found = kernels_.find(source); found != kernels_.end())
    if (std::shared_ptr<Kernel> kernel = found->second.lock()) return kernel;
  std::erase_if(kernels_, [](const auto& entry) { return entry.second.expired(); });
  kernels_[source] = *built;
  return std::shared_ptr<Kernel>(*built);
}

Result<std::shared_ptr<CudaKernel>> CudaDevice::load(const Cubin& cubin) {
  const CurrentContext current(*context_);
  const CaptureTolerance tolerance;
  return CudaKernel::load(context_, cubin, info_.limits.shared_bytes_per_block);
}

// The kernel from the store, or null where it is not there or the driver does not take it: then it is compiled.
std::shared_ptr<CudaKernel> CudaDevice::load_stored(const KernelSpec& spec) {
  std::shared_ptr<const CubinStore> cubins;
  {
    const std::lock_guard lock(kernels_mutex_);
    cubins = cubins_;
  }
  const std::optional<Cubin> cubin = cubins ? cubins->find(spec) : std::nullopt;
  if (!cubin) return nullptr;
  const Result<std::shared_ptr<CudaKernel>> kernel = load(*cubin);
  return kernel ? *kernel : nullptr;
}

Result<std::shared_ptr<CudaKernel>> CudaDevice::compile_and_load(const KernelSpec& spec) {
  const Result<std::string> key = compile_key(spec, info_.limits.compute_capability);
  if (!key) return Failure{key.error()};
  const auto compile = [&] { return compile_kernel(spec, info_.limits.compute_capability); };

  Result<Cubin> cubin = shared_cubin_cache().get(*key, compile);
  if (!cubin) return Failure{cubin.error()};
  Result<std::shared_ptr<CudaKernel>> kernel = load(*cubin);
  if (kernel) return kernel;

  // The driver is the last judge of what came out of the cache: compile once more before giving up.
  shared_cubin_cache().discard(*key);
  cubin = shared_cubin_cache().get(*key, compile);
  if (!cubin) return Failure{cubin.error()};
  kernel = load(*cubin);
  if (!kernel)
    return Failure{"GPU " + std::to_string(info_.index) + " (" + info_.name + ") cannot load " + spec.name +
                   ", compiled for " + cubin->target.arch + ": " + kernel.error()};
  return kernel;
}

Result<Buffer> CudaDevice::allocate(size_t bytes) {
  if (bytes == 0) return Buffer();
  const CurrentContext current(*context_);
  const CaptureTolerance tolerance;
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return Failure{"not enough memory on GPU " + std::to_string(info_.index) + " (" + info_.name + ") for " +
                   std::to_string(bytes) + " bytes: " + std::to_string(free_bytes()) + " are free"};
  }
  check(error, "allocating " + std::to_string(bytes) + " bytes of GPU memory");
  const auto free = [context = context_](void* memory) { release_quietly(*context, [&] { cudaFree(memory); }); };
  return Buffer(data, bytes, free);
}

int64_t CudaDevice::free_bytes() const {
  const CurrentContext current(*context_);
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for the free memory of GPU " + std::to_string(info_.index));
  return static_cast<int64_t>(free);
}

void CudaDevice::copy_to_device(void* device, const void* host, size_t bytes) {
  const CurrentContext current(*context_);
  check(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "copying " + std::to_string(bytes) + " bytes to the GPU");
  // The copy of pageable memory may still be under way, and only blocking streams wait for it.
  check(cudaStreamSynchronize(cudaStreamLegacy), "copying " + std::to_string(bytes) + " bytes to the GPU");
}

void CudaDevice::copy_to_host(void* host, const void* device, size_t bytes) {
  const CurrentContext current(*context_);
  check(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), "copying " + std::to_string(bytes) + " bytes from the GPU");
}

void CudaDevice::set_words(void* device, uint32_t word, size_t count, Stream stream) {
  const CurrentContext current(*context_);
  context_->set_words(device, word, count, static_cast<cudaStream_t>(stream));
}

void CudaDevice::set_words_now(void* device, uint32_t word, size_t count) {
  const CurrentContext current(*context_);
  const CaptureTolerance tolerance;
  const std::lock_guard lock(own_stream_mutex_);
  if (!own_stream_) check(cudaStreamCreateWithFlags(&own_stream_, cudaStreamNonBlocking), "creating a stream on the GPU");
  context_->set_words(device, word, count, own_stream_);
  check(cudaStreamSynchronize(own_stream_), "filling GPU memory");
}

void CudaDevice::mark(Marker& marker, Stream stream) {
  const CurrentContext current(*context_);
  check(cudaEventRecord(static_cast<CudaMarker&>(marker).event(), static_cast<cudaStream_t>(stream)), "marking a stream");
}

void CudaDevice::wait_for(const Marker& marker, Stream stream) {
  const CurrentContext current(*context_);
  check(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), static_cast<const CudaMarker&>(marker).event(), 0),
        "letting a stream wait");
}

Result<bool> CudaDevice::launch(const Kernel& kernel, Grid grid, int threads, int shared_bytes, const void* args,
                                size_t /*args_bytes: the compiled kernel knows*/, Stream stream) {
  const CurrentContext current(*context_);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid.x, grid.y, grid.z);
  config.blockDim = dim3(static_cast<unsigned>(threads), 1, 1);
  config.dynamicSmemBytes = static_cast<size_t>(shared_bytes);
  config.stream = static_cast<cudaStream_t>(stream);
  std::array<cudaLaunchAttribute, 2> attributes{};
  config.attrs = attributes.data();
  if (grid.overlaps_predecessor && info_.limits.compute_capability >= kProgrammaticLaunch) {
    cudaLaunchAttribute& early = attributes[config.numAttrs++];
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
  }
  if (grid.cluster_y > 1) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = cluster.val.clusterDim.z = 1;
    cluster.val.clusterDim.y = grid.cluster_y;
  }
  void* arguments[] = {const_cast<void*>(args)};
  const cudaError_t error = cudaLaunchKernelExC(&config, static_cast<const CudaKernel&>(kernel).function(), arguments);
  if (error == cudaSuccess) return true;
  if (breaks_context(error)) check(error, "earlier work on GPU " + std::to_string(info_.index));
  cudaGetLastError();
  return Failure{"the launch of " + std::to_string(grid.x) + "x" + std::to_string(grid.y) + "x" + std::to_string(grid.z) +
                 " blocks with " + std::to_string(threads) + " threads and " + std::to_string(shared_bytes) +
                 " bytes of shared memory was refused: " + describe(error)};
}

void CudaDevice::synchronize(Stream stream) {
  const CurrentContext current(*context_);
  check(stream ? cudaStreamSynchronize(static_cast<cudaStream_t>(stream)) : cudaDeviceSynchronize(), "work on the GPU");
}

std::vector<std::vector<double>> CudaDevice::measure(const std::vector<Workload>& workloads, const MeasurePlan& plan) {
  const std::lock_guard lock(timer_mutex_);
  const CurrentContext current(*context_);
  if (!timer_) timer_ = std::make_unique<CudaDeviceTimer>();
  return timer_->measure(workloads, plan);
}

}  // namespace

Result<std::unique_ptr<Device>> open_cuda_device(int index) {
  Result<DeviceInfo> info = cuda_device_info(index);
  if (!info) return Failure{info.error()};
  Result<std::shared_ptr<CudaContext>> context = CudaContext::open(index);
  if (!context) return Failure{context.error()};
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(std::move(*info), std::move(*context)));
}

}  // namespace gemm
