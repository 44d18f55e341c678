// cublasLtMatmul, which takes its stream and settings as arguments.
#include "dropin/describe_lt.h"
#include "dropin/intercept.h"

using namespace gemm::dropin;

cublasStatus_t cublasLtMatmul(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t computeDesc, const void* alpha,
                              const void* A, cublasLtMatrixLayout_t Adesc, const void* B, cublasLtMatrixLayout_t Bdesc,
                              const void* beta, const void* C, cublasLtMatrixLayout_t Cdesc, void* D,
                              cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t workspaceSizeInBytes, cudaStream_t stream) {
  const Inside inside;
  auto* const real = real_function<Entry::lt_matmul, decltype(cublasLtMatmul)>();
  if (!real) return CUBLAS_STATUS_NOT_INITIALIZED;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  if (may_serve(Entry::lt_matmul)) {
    // The algorithm that callers pass is the library's own advice, not a wish.
    const Call call = lightHandle ? describe_lt(computeDesc, alpha, A, Adesc, B, Bdesc, beta, C, Cdesc, D, Ddesc)
                                  : forwarded(Verdict::unusual);
    if (serve_on_stream(Entry::lt_matmul, call, stream, status)) return status;
  }
  return real(lightHandle, computeDesc, alpha, A, Adesc, B, Bdesc, beta, C, Cdesc, D, Ddesc, algo, workspace,
              workspaceSizeInBytes, stream);
}
