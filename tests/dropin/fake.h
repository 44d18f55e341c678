// What the fake cuBLAS and its callers share.
#pragma once

#include <cstdint>
#include <map>

namespace gemm::test {

// What a cublasHandle_t points to.
struct FakeHandle {
  void* stream = nullptr;
  int pointer_mode = 0;
  int math_mode = 0;
  int sm_limit = 0;
};

// What a cublasLtMatmulDesc_t or cublasLtMatrixLayout_t points to: attributes by their number. The library does not know the
// others.
using FakeAttributes = std::map<int, uint64_t>;

}  // namespace gemm::test
