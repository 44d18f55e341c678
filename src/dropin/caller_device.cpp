#include "dropin/caller_device.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <atomic>

namespace gemm::dropin {
namespace {

constexpr int kMaxDevices = 64;

// The driver is asked, not the runtime: the program has a runtime of its own, and only the driver's current context is
// common to both. The runtime that is linked into us serves to find the driver's functions.
template <class Function>
Function* driver_function(const char* name) {
  constexpr unsigned kInterface = 12000;  // older than every driver that libdispatch accepts
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  if (cudaGetDriverEntryPointByVersion(name, &function, kInterface, cudaEnableLegacyStream, &found) != cudaSuccess)
    cudaGetLastError();
  return found == cudaDriverEntryPointSuccess ? reinterpret_cast<Function*>(function) : nullptr;
}

struct Driver {
  CUresult (*current)(CUcontext*) = driver_function<CUresult(CUcontext*)>("cuCtxGetCurrent");
  CUresult (*device_of_current)(CUdevice*) = driver_function<CUresult(CUdevice*)>("cuCtxGetDevice");
  CUresult (*context_of)(CUstream, CUcontext*) = driver_function<CUresult(CUstream, CUcontext*)>("cuStreamGetCtx");
  CUresult (*primary_state)(CUdevice, unsigned*,
                            int*) = driver_function<CUresult(CUdevice, unsigned*, int*)>("cuDevicePrimaryCtxGetState");
  CUresult (*retain_primary)(CUcontext*,
                             CUdevice) = driver_function<CUresult(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain");
  CUresult (*release_primary)(CUdevice) = driver_function<CUresult(CUdevice)>("cuDevicePrimaryCtxRelease");

  bool complete() const {
    return current && device_of_current && context_of && primary_state && retain_primary && release_primary;
  }
};

// Never creates a primary context: where none is active, the current context is not one.
bool is_primary(const Driver& driver, CUcontext context, CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  CUcontext primary = nullptr;
  if (driver.primary_state(device, &flags, &active) != CUDA_SUCCESS || !active) return false;
  if (driver.retain_primary(&primary, device) != CUDA_SUCCESS) return false;
  driver.release_primary(device);
  return primary == context;
}

// NULL, cudaStreamLegacy and cudaStreamPerThread belong to whatever context is current.
bool is_default_stream(Stream stream) { return reinterpret_cast<uintptr_t>(stream) <= 2; }

}  // namespace

std::optional<int> caller_device(Stream stream) {
  static const Driver driver;
  static std::array<std::atomic<CUcontext>, kMaxDevices> primaries{};
  CUcontext context = nullptr, owner = nullptr;
  CUdevice device = 0;
  if (!driver.complete() || driver.current(&context) != CUDA_SUCCESS || !context) return {};
  if (driver.device_of_current(&device) != CUDA_SUCCESS || device < 0 || device >= kMaxDevices) return {};
  if (!is_default_stream(stream)) {
    if (driver.context_of(static_cast<CUstream>(stream), &owner) != CUDA_SUCCESS || owner != context) return {};
  }
  std::atomic<CUcontext>& primary = primaries[static_cast<size_t>(device)];
  if (primary.load(std::memory_order_relaxed) != context) {
    if (!is_primary(driver, context, device)) return {};
    primary.store(context, std::memory_order_relaxed);
  }
  return device;
}

}  // namespace gemm::dropin
