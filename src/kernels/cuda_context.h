// How our calls run on one GPU without changing the caller's current device; CUDA errors as messages. Used by the CUDA
// device only.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kernels/result.h"

namespace gemm {

// "an illegal memory access was encountered (cudaErrorIllegalAddress)"
std::string describe(cudaError_t error);

// Throws Error "WHAT failed: REASON" unless `result` is success. The error does not stick to later calls.
void check(cudaError_t result, const std::string& what);

// Errors after which the process can do nothing more on this GPU.
bool breaks_context(cudaError_t error);

// Retains the primary context of a GPU. Shared by all that lives on the GPU (kernels, buffers), so that they can be freed in
// any order.
class CudaContext {
 public:
  static Result<std::shared_ptr<CudaContext>> open(int device);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  int device() const { return device_; }

  // Fills 32-bit words; the runtime API has no such call.
  void set_words(void* data, uint32_t word, size_t count, cudaStream_t stream) const;

 private:
  friend class CurrentContext;
  // The driver's own functions, which the runtime API has no counterpart of.
  struct Driver {
    CUresult (*device_get)(CUdevice*, int) = nullptr;
    CUresult (*retain)(CUcontext*, CUdevice) = nullptr;
    CUresult (*release)(CUdevice) = nullptr;
    CUresult (*get_current)(CUcontext*) = nullptr;
    CUresult (*device_of_current)(CUdevice*) = nullptr;
    CUresult (*push)(CUcontext) = nullptr;
    CUresult (*pop)(CUcontext*) = nullptr;
    CUresult (*set_words)(CUdeviceptr, unsigned, size_t, CUstream) = nullptr;
  };
  static Result<Driver> find_driver();

  CudaContext(const Driver& driver, int device, CUdevice handle, CUcontext context)
      : driver_(driver), device_(device), handle_(handle), context_(context) {}

  Driver driver_;
  int device_;
  CUdevice handle_;
  CUcontext context_;
};

// Makes the GPU current while it lives, then gives the caller's context back. Pushing the context, unlike cudaSetDevice
// there and back, neither initialises the caller's GPU nor replaces a context that the caller made itself. Costs one call
// where the GPU is current already.
class CurrentContext {
 public:
  explicit CurrentContext(const CudaContext& context);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const CudaContext& context_;
  bool pushed_ = false;
};

// For destructors: runs `release` with the GPU current, or not at all where that cannot be any more (the process is ending).
// Errors are dropped: memory of a broken context is gone with it.
void release_quietly(const CudaContext& context, const std::function<void()>& release) noexcept;

// Lets this thread allocate, free and load while some stream is being captured, which it could not in the default mode.
class CaptureTolerance {
 public:
  CaptureTolerance() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~CaptureTolerance() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  CaptureTolerance(const CaptureTolerance&) = delete;
  CaptureTolerance& operator=(const CaptureTolerance&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace gemm
