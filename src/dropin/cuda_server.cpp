// The process's server on its real GPUs. A file of its own, so that tests can put an emulated device in its place.
#include <cstdio>

#include "dropin/caller_device.h"
#include "dropin/server.h"
#include "gemm/gemm.h"
#include "kernels/cuda_context.h"

namespace gemm::dropin {
namespace {

gemm_context_t* open_context(int device) {
  // The program's very first product may be one that is being captured.
  const CaptureTolerance tolerance;
  gemm_context_t* context = nullptr;
  if (gemm_create(&context, device) != GEMM_SUCCESS)
    std::fprintf(stderr, "gemm: warning: the drop-in leaves GPU %d to cuBLAS: %s\n", device, gemm_last_error());
  return context;
}

}  // namespace

Server& server() {
  static auto* const on_gpus = new Server(caller_device, open_context);
  return *on_gpus;
}

}  // namespace gemm::dropin
