// The kernels that are compiled for the host, found by the expression that names them in KernelSpec::function.
#pragma once

#include <string>

namespace gemm {

// Runs one CUDA thread of a kernel; `args` points at the kernel's one struct argument.
using HostKernel = void (*)(const void* args);

// nullptr when there is no such instance.
HostKernel find_host_kernel(const std::string& function);

}  // namespace gemm
