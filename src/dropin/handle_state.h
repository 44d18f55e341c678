// What a cuBLAS handle is set to, asked of the real library.
#pragma once

#include <cublas_v2.h>

#include "dropin/call.h"

namespace gemm::dropin {

// The handle's settings decide: why a call with it must be forwarded, or served; then *stream is where its work goes, and
// the call knows where its scalars lie. A handle that the library does not accept is `unusual`: the library then says so
// itself.
Verdict judge(cublasHandle_t handle, Call& call, cudaStream_t* stream);

}  // namespace gemm::dropin
