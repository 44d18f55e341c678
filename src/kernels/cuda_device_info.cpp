#include "kernels/cuda_device_info.h"

#include <cuda_runtime_api.h>

#include <string>

#include "kernels/cuda_context.h"
#include "kernels/dynamic_library.h"

namespace gemm {
namespace {

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

std::string cuda_runtime_version() {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  return version_text(version);
}

int newest_cuda_of_driver() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

// "580.159.04" from NVML, whose functions return 0 for success; empty where it cannot tell.
std::string driver_version_of_nvml() {
  const auto library = DynamicLibrary::open({"libnvidia-ml.so.1"}, "It comes with the NVIDIA driver.");
  if (!library) return {};
  auto* const init = library->symbol<int()>("nvmlInit_v2");
  auto* const version = library->symbol<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
  auto* const shutdown = library->symbol<int()>("nvmlShutdown");
  if (!init || !version || !shutdown || init() != 0) return {};
  char text[96] = {};
  const bool known = version(text, sizeof text) == 0;
  shutdown();
  return known ? text : "";
}

std::string driver_version() {
  const std::string version = driver_version_of_nvml();
  return version.empty() ? "for CUDA " + version_text(newest_cuda_of_driver()) : version;
}

// As nvidia-smi shows it: GPU-8 digits, then three groups of 4 and one of 12.
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 0xf];
  }
  return text;
}

std::string why_no_gpu(cudaError_t error) {
  const int supported = newest_cuda_of_driver();
  if (supported == 0)
    return "no NVIDIA driver is installed here (libcuda.so.1 was not found); install one for CUDA 12.8 or newer";
  if (error == cudaErrorInsufficientDriver)
    return "the NVIDIA driver is for CUDA " + version_text(supported) + ", older than the CUDA " + cuda_runtime_version() +
           " that this program was built with; install a newer driver";
  if (error == cudaErrorNoDevice || error == cudaSuccess)
    return "there is an NVIDIA driver but no GPU that it may use; check nvidia-smi and CUDA_VISIBLE_DEVICES";
  return "the GPUs cannot be listed: " + describe(error) + "; check nvidia-smi";
}

DeviceLimits limits_of(const cudaDeviceProp& properties) {
  DeviceLimits limits;
  limits.compute_capability = properties.major * 10 + properties.minor;
  limits.shared_bytes_per_block = static_cast<int>(properties.sharedMemPerBlockOptin);
  limits.shared_bytes_per_sm = static_cast<int>(properties.sharedMemPerMultiprocessor);
  limits.registers_per_sm = properties.regsPerMultiprocessor;
  limits.threads_per_sm = properties.maxThreadsPerMultiProcessor;
  return limits;
}

std::string valid_indices(int count) {
  return count == 1 ? "the only GPU is 0" : "GPUs are 0 to " + std::to_string(count - 1);
}

}  // namespace

int cuda_device_count(std::string* why) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return count;
  cudaGetLastError();
  if (why) *why = why_no_gpu(error);
  return 0;
}

Result<DeviceInfo> cuda_device_info(int index) {
  std::string why;
  const int count = cuda_device_count(&why);
  if (count == 0) return Failure{why};
  if (index < 0 || index >= count) return Failure{"there is no GPU " + std::to_string(index) + "; " + valid_indices(count)};

  cudaDeviceProp properties{};
  int clock_khz = 0;
  cudaError_t error = cudaGetDeviceProperties(&properties, index);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, index);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return Failure{"GPU " + std::to_string(index) + " does not answer: " + describe(error) + "; check nvidia-smi"};
  }

  DeviceInfo info;
  info.name = properties.name;
  info.limits = limits_of(properties);
  if (info.limits.compute_capability < kOldestComputeCapability)
    return Failure{"GPU " + std::to_string(index) + " (" + info.name + ") is of compute capability " +
                   std::to_string(properties.major) + "." + std::to_string(properties.minor) +
                   "; the kernels need 7.5 (Turing) or newer"};
  info.uuid = uuid_text(properties.uuid);
  info.index = index;
  info.sm_count = properties.multiProcessorCount;
  info.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  info.l2_bytes = properties.l2CacheSize;
  info.sm_clock_mhz = clock_khz / 1000;
  info.driver = driver_version();
  info.cuda_runtime = cuda_runtime_version();
  return info;
}

}  // namespace gemm
