// Compiled for CPUs with AVX2; kernel_search.cpp calls this on no other.
#include "dispatch/split_climb.h"

namespace gemm {

KernelSearch wide_kernel_search() { return cost::search_group<8>; }

}  // namespace gemm
