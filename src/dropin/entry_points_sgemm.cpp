// The functions that are named after single precision.
#include "dropin/describe.h"
#include "dropin/intercept.h"

using gemm::dropin::Entry;
using gemm::dropin::intercept;

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
                              const float* alpha, const float* A, int lda, const float* B, int ldb, const float* beta,
                              float* C, int ldc) {
  return intercept<Entry::sgemm>(gemm::dropin::describe_sgemm<int>, handle, transa, transb, m, n, k, alpha, A, lda, B, ldb,
                                 beta, C, ldc);
}

cublasStatus_t cublasSgemm_v2_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int64_t m,
                                 int64_t n, int64_t k, const float* alpha, const float* A, int64_t lda, const float* B,
                                 int64_t ldb, const float* beta, float* C, int64_t ldc) {
  return intercept<Entry::sgemm_64>(gemm::dropin::describe_sgemm<int64_t>, handle, transa, transb, m, n, k, alpha, A, lda, B,
                                    ldb, beta, C, ldc);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                                         int n, int k, const float* alpha, const float* A, int lda, long long int strideA,
                                         const float* B, int ldb, long long int strideB, const float* beta, float* C,
                                         int ldc, long long int strideC, int batchCount) {
  return intercept<Entry::sgemm_strided>(gemm::dropin::describe_sgemm_strided<int>, handle, transa, transb, m, n, k, alpha,
                                         A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount);
}

cublasStatus_t cublasSgemmStridedBatched_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                            int64_t m, int64_t n, int64_t k, const float* alpha, const float* A, int64_t lda,
                                            long long int strideA, const float* B, int64_t ldb, long long int strideB,
                                            const float* beta, float* C, int64_t ldc, long long int strideC,
                                            int64_t batchCount) {
  return intercept<Entry::sgemm_strided_64>(gemm::dropin::describe_sgemm_strided<int64_t>, handle, transa, transb, m, n, k,
                                            alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount);
}

cublasStatus_t cublasSgemmBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                                  int k, const float* alpha, const float* const Aarray[], int lda,
                                  const float* const Barray[], int ldb, const float* beta, float* const Carray[], int ldc,
                                  int batchCount) {
  return intercept<Entry::sgemm_batched>(gemm::dropin::describe_sgemm_batched<int>, handle, transa, transb, m, n, k, alpha,
                                         Aarray, lda, Barray, ldb, beta, Carray, ldc, batchCount);
}

cublasStatus_t cublasSgemmBatched_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int64_t m,
                                     int64_t n, int64_t k, const float* alpha, const float* const Aarray[], int64_t lda,
                                     const float* const Barray[], int64_t ldb, const float* beta, float* const Carray[],
                                     int64_t ldc, int64_t batchCount) {
  return intercept<Entry::sgemm_batched_64>(gemm::dropin::describe_sgemm_batched<int64_t>, handle, transa, transb, m, n, k,
                                            alpha, Aarray, lda, Barray, ldb, beta, Carray, ldc, batchCount);
}

cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
                             const float* alpha, const void* A, cudaDataType Atype, int lda, const void* B,
                             cudaDataType Btype, int ldb, const float* beta, void* C, cudaDataType Ctype, int ldc) {
  return intercept<Entry::sgemm_ex>(gemm::dropin::describe_sgemm_ex<int>, handle, transa, transb, m, n, k, alpha, A, Atype,
                                    lda, B, Btype, ldb, beta, C, Ctype, ldc);
}

cublasStatus_t cublasSgemmEx_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int64_t m,
                                int64_t n, int64_t k, const float* alpha, const void* A, cudaDataType Atype, int64_t lda,
                                const void* B, cudaDataType Btype, int64_t ldb, const float* beta, void* C,
                                cudaDataType Ctype, int64_t ldc) {
  return intercept<Entry::sgemm_ex_64>(gemm::dropin::describe_sgemm_ex<int64_t>, handle, transa, transb, m, n, k, alpha, A,
                                       Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc);
}
