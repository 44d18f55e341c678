// The process's server on its real GPUs. A file of its own, so that tests can put an emulated device in its place.
#include <cstdio>
#include <exception>
#include <string>

#include "dropin/caller_device.h"
#include "dropin/server.h"
#include "kernels/cuda_context.h"

namespace gemm::dropin {
namespace {

gemm_context_t* open_context(int device) {
  // The program's very first product may be one that is being captured.
  const CaptureTolerance tolerance;
  std::string why;
  try {
    Result<std::unique_ptr<Device>> opened = open_cuda_device(device);
    if (opened) return make_context(std::move(*opened), {.cublas_is_callers = true});
    why = opened.error();
  } catch (const std::exception& error) {
    why = error.what();
  }
  std::fprintf(stderr, "gemm: warning: the drop-in leaves GPU %d to cuBLAS: %s\n", device, why.c_str());
  return nullptr;
}

}  // namespace

Server& server() {
  static auto* const on_gpus = new Server(caller_device, open_context);
  return *on_gpus;
}

}  // namespace gemm::dropin
