// Inside the C API: a context on any device, so that tests drive the emulated device through the very same functions.
#pragma once

#include <memory>

#include "dispatch/context.h"
#include "gemm/gemm.h"
#include "kernels/device.h"

struct gemm_context {
  gemm::Context context;
};

namespace gemm {

// To be released with gemm_destroy.
gemm_context_t* make_context(std::unique_ptr<Device> device, ContextOptions options = {});

}  // namespace gemm
