// A libcublas that multiplies nothing: it records which function was called with which sizes. cuBLAS's headers are left out
// on purpose, so that each function needs its first arguments only; the calling convention lets callers pass more.
#include "fake.h"
#include "fake_record.h"

using gemm::test::FakeHandle;
using gemm::test::record;

extern "C" {

#define GEMM_TEST_FAKE(name) \
  int name(void*, int, int, int m, int n, int k) { return record(#name, m, n, k), m < 0 ? 7 : 0; }

GEMM_TEST_FAKE(cublasSgemm_v2)
GEMM_TEST_FAKE(cublasSgemm_v2_64)
GEMM_TEST_FAKE(cublasSgemmStridedBatched)
GEMM_TEST_FAKE(cublasSgemmStridedBatched_64)
GEMM_TEST_FAKE(cublasSgemmBatched)
GEMM_TEST_FAKE(cublasSgemmBatched_64)
GEMM_TEST_FAKE(cublasSgemmEx)
GEMM_TEST_FAKE(cublasSgemmEx_64)
GEMM_TEST_FAKE(cublasGemmEx_64)
GEMM_TEST_FAKE(cublasGemmStridedBatchedEx)
GEMM_TEST_FAKE(cublasGemmStridedBatchedEx_64)
GEMM_TEST_FAKE(cublasGemmBatchedEx)
GEMM_TEST_FAKE(cublasGemmBatchedEx_64)

// Comes back through a public function, as cuBLAS does in places.
int cublasGemmEx(void* handle, int op_a, int op_b, int m, int n, int k) {
  record("cublasGemmEx", m, n, k);
  return cublasSgemm_v2(handle, op_a, op_b, m, n, k);
}

int cublasGetStream_v2(const FakeHandle* handle, void** stream) { return *stream = handle->stream, 0; }
int cublasGetPointerMode_v2(const FakeHandle* handle, int* mode) { return *mode = handle->pointer_mode, 0; }
int cublasGetMathMode(const FakeHandle* handle, int* mode) { return *mode = handle->math_mode, 0; }
int cublasGetSmCountTarget(const FakeHandle* handle, int* limit) { return *limit = handle->sm_limit, 0; }

// What was called since the last question, for tests.
const char* fake_cublas_calls() {
  static std::string asked;
  asked = gemm::test::fake_record();
  gemm::test::fake_record().clear();
  return asked.c_str();
}
}
