#include "kernels/cuda_context.h"

namespace gemm {
namespace {

// The driver function in the form that it has had since CUDA 12.0, which is older than every driver we accept.
constexpr unsigned kDriverInterface = 12000;

template <class Function>
bool find(const char* name, Function*& function) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  if (cudaGetDriverEntryPointByVersion(name, &address, kDriverInterface, cudaEnableLegacyStream, &status) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  function = reinterpret_cast<Function*>(address);
  return status == cudaDriverEntryPointSuccess && function != nullptr;
}

}  // namespace

std::string describe(cudaError_t error) {
  return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
}

void check(cudaError_t result, const std::string& what) {
  if (result == cudaSuccess) return;
  cudaGetLastError();
  throw Error(what + " failed: " + describe(result));
}

bool breaks_context(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown: return true;
    default: return false;
  }
}

Result<CudaContext::Driver> CudaContext::find_driver() {
  Driver d;
  const bool found = find("cuDeviceGet", d.device_get) && find("cuDevicePrimaryCtxRetain", d.retain) &&
                     find("cuDevicePrimaryCtxRelease", d.release) && find("cuCtxGetCurrent", d.get_current) &&
                     find("cuCtxGetDevice", d.device_of_current) && find("cuCtxPushCurrent", d.push) &&
                     find("cuCtxPopCurrent", d.pop) && find("cuMemsetD32Async", d.set_words);
  if (!found) return Failure{"the NVIDIA driver is too old; install one for CUDA 12.8 or newer"};
  return d;
}

Result<std::shared_ptr<CudaContext>> CudaContext::open(int device) {
  const Result<Driver> driver = find_driver();
  if (!driver) return Failure{driver.error()};
  CUdevice handle = 0;
  CUcontext context = nullptr;
  CUresult result = driver->device_get(&handle, device);
  if (result == CUDA_SUCCESS) result = driver->retain(&context, handle);
  // The runtime's error numbers are the driver's.
  if (result != CUDA_SUCCESS)
    return Failure{"GPU " + std::to_string(device) + " cannot be used: " + describe(static_cast<cudaError_t>(result))};
  return std::shared_ptr<CudaContext>(new CudaContext(*driver, device, handle, context));
}

CudaContext::~CudaContext() { driver_.release(handle_); }

void CudaContext::set_words(void* data, uint32_t word, size_t count, cudaStream_t stream) const {
  if (count == 0) return;
  const CUresult result = driver_.set_words(reinterpret_cast<CUdeviceptr>(data), word, count, stream);
  check(static_cast<cudaError_t>(result), "filling " + std::to_string(count) + " words of GPU memory");
}

CurrentContext::CurrentContext(const CudaContext& context) : context_(context) {
  CUcontext current = nullptr;
  CUdevice device = 0;
  const CudaContext::Driver& driver = context.driver_;
  driver.get_current(&current);
  if (current == context.context_) return;
  // A context that the caller made on the same GPU: its streams belong to it, so work must stay in it.
  if (current && driver.device_of_current(&device) == CUDA_SUCCESS && device == context.handle_) return;
  const CUresult result = driver.push(context.context_);
  check(static_cast<cudaError_t>(result), "making GPU " + std::to_string(context.device_) + " current");
  pushed_ = true;
}

CurrentContext::~CurrentContext() {
  CUcontext popped = nullptr;
  if (pushed_) context_.driver_.pop(&popped);
}

void release_quietly(const CudaContext& context, const std::function<void()>& release) noexcept {
  try {
    const CurrentContext current(context);
    const CaptureTolerance tolerance;
    release();
    cudaGetLastError();
  } catch (const Error&) {
    return;
  }
}

}  // namespace gemm
