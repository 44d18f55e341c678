// What is being captured on a CUDA stream, and things that live as long as its graph. Used by the CUDA device only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "kernels/result.h"

namespace gemm {

// The number of the capture that `stream` is part of, unique in the process; 0 where it is in none. The GPU must be current.
uint64_t cuda_capture_id(cudaStream_t stream);

// Keeps `thing` until the graph that is being captured on `stream`, its copies and its executables are destroyed. The last
// owner may be a thread of the driver, so what happens there must not call CUDA. Failure: there is no capture.
Result<bool> keep_with_cuda_capture(cudaStream_t stream, std::shared_ptr<void> thing);

}  // namespace gemm
