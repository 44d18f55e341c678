// Makes a Call of cublasLtMatmul's arguments.
#pragma once

#include <cublasLt.h>

#include "dropin/call.h"

namespace gemm::dropin {

// Opaque descriptors are read with the real library's own functions.
Call describe_lt(cublasLtMatmulDesc_t operation, const void* alpha, const void* a, cublasLtMatrixLayout_t layout_a,
                 const void* b, cublasLtMatrixLayout_t layout_b, const void* beta, const void* c,
                 cublasLtMatrixLayout_t layout_c, void* d, cublasLtMatrixLayout_t layout_d);

}  // namespace gemm::dropin
