// The functions that take types as arguments.
#include "dropin/describe.h"
#include "dropin/intercept.h"

using gemm::dropin::Entry;
using gemm::dropin::intercept;

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
                            const void* alpha, const void* A, cudaDataType Atype, int lda, const void* B, cudaDataType Btype,
                            int ldb, const void* beta, void* C, cudaDataType Ctype, int ldc, cublasComputeType_t computeType,
                            cublasGemmAlgo_t algo) {
  return intercept<Entry::gemm_ex>(gemm::dropin::describe_gemm_ex<int>, handle, transa, transb, m, n, k, alpha, A, Atype,
                                   lda, B, Btype, ldb, beta, C, Ctype, ldc, computeType, algo);
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int64_t m,
                               int64_t n, int64_t k, const void* alpha, const void* A, cudaDataType Atype, int64_t lda,
                               const void* B, cudaDataType Btype, int64_t ldb, const void* beta, void* C, cudaDataType Ctype,
                               int64_t ldc, cublasComputeType_t computeType, cublasGemmAlgo_t algo) {
  return intercept<Entry::gemm_ex_64>(gemm::dropin::describe_gemm_ex<int64_t>, handle, transa, transb, m, n, k, alpha, A,
                                      Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc, computeType, algo);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                                          int n, int k, const void* alpha, const void* A, cudaDataType Atype, int lda,
                                          long long int strideA, const void* B, cudaDataType Btype, int ldb,
                                          long long int strideB, const void* beta, void* C, cudaDataType Ctype, int ldc,
                                          long long int strideC, int batchCount, cublasComputeType_t computeType,
                                          cublasGemmAlgo_t algo) {
  return intercept<Entry::gemm_strided_ex>(gemm::dropin::describe_gemm_strided_ex<int>, handle, transa, transb, m, n, k,
                                           alpha, A, Atype, lda, strideA, B, Btype, ldb, strideB, beta, C, Ctype, ldc,
                                           strideC, batchCount, computeType, algo);
}

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                             int64_t m, int64_t n, int64_t k, const void* alpha, const void* A,
                                             cudaDataType Atype, int64_t lda, long long int strideA, const void* B,
                                             cudaDataType Btype, int64_t ldb, long long int strideB, const void* beta,
                                             void* C, cudaDataType Ctype, int64_t ldc, long long int strideC,
                                             int64_t batchCount, cublasComputeType_t computeType, cublasGemmAlgo_t algo) {
  return intercept<Entry::gemm_strided_ex_64>(gemm::dropin::describe_gemm_strided_ex<int64_t>, handle, transa, transb, m, n,
                                              k, alpha, A, Atype, lda, strideA, B, Btype, ldb, strideB, beta, C, Ctype, ldc,
                                              strideC, batchCount, computeType, algo);
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                                   int k, const void* alpha, const void* const Aarray[], cudaDataType Atype, int lda,
                                   const void* const Barray[], cudaDataType Btype, int ldb, const void* beta,
                                   void* const Carray[], cudaDataType Ctype, int ldc, int batchCount,
                                   cublasComputeType_t computeType, cublasGemmAlgo_t algo) {
  return intercept<Entry::gemm_batched_ex>(gemm::dropin::describe_gemm_batched_ex<int>, handle, transa, transb, m, n, k,
                                           alpha, Aarray, Atype, lda, Barray, Btype, ldb, beta, Carray, Ctype, ldc,
                                           batchCount, computeType, algo);
}

cublasStatus_t cublasGemmBatchedEx_64(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int64_t m,
                                      int64_t n, int64_t k, const void* alpha, const void* const Aarray[],
                                      cudaDataType Atype, int64_t lda, const void* const Barray[], cudaDataType Btype,
                                      int64_t ldb, const void* beta, void* const Carray[], cudaDataType Ctype, int64_t ldc,
                                      int64_t batchCount, cublasComputeType_t computeType, cublasGemmAlgo_t algo) {
  return intercept<Entry::gemm_batched_ex_64>(gemm::dropin::describe_gemm_batched_ex<int64_t>, handle, transa, transb, m, n,
                                              k, alpha, Aarray, Atype, lda, Barray, Btype, ldb, beta, Carray, Ctype, ldc,
                                              batchCount, computeType, algo);
}
