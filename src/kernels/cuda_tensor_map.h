// Tensor maps of the CUDA driver, found at run time.
#pragma once

#include "kernels/device.h"

namespace gemm {

// Failure: the driver has no tensor maps, or refuses this one.
Result<TensorMap> encode_cuda_map(const TensorMapSpec& spec);
// Throws Error where the driver refuses the address.
void move_cuda_map(TensorMap& map, const float* data);

}  // namespace gemm
