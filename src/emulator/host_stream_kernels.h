// Host instances of the streaming kernel.
#pragma once

#include "emulator/host_tile_kernels.h"

namespace gemm {

// Adds all variants of kEmulatedStreamConfigs: op pairs and vector widths of both operands.
void register_stream_kernels(HostKernelMap& map);

}  // namespace gemm
