// Host instances of the tile kernel. Each configuration is instantiated in a source file of its own (CMake writes them), so
// that they compile in parallel and in little memory.
#pragma once

#include <string>
#include <unordered_map>

#include "emulator/emulated_configs.h"
#include "emulator/host_kernels.h"

namespace gemm {

using HostKernelMap = std::unordered_map<std::string, HostKernel>;

// Adds all variants of kEmulatedConfigs[Index]: op pairs, vector widths of both operands, and 64-bit offsets.
template <int Index>
void register_tile_kernels(HostKernelMap& map);

}  // namespace gemm
