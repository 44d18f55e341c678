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

// gemm_sgemm_ex of `operands`, which name the matrices and, for internal callers, an epilogue; alpha and beta are added.
gemm_status_t sgemm(gemm_context_t* context, gemm_stream_t stream, const gemm_problem_t& problem, gemm_scalars_t scalars,
                    const float* alpha, const float* beta, Operands operands);

}  // namespace gemm
