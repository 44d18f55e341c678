// Host instances of the batch kernel.
#pragma once

#include "emulator/host_tile_kernels.h"

namespace gemm {

// Adds all variants of kEmulatedBatchConfigs: op pairs and vector widths of both operands.
void register_batch_kernels(HostKernelMap& map);

}  // namespace gemm
