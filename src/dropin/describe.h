// Makes Calls of the arguments of cuBLAS's functions: only what is plainly an FP32 product with legal arguments is to be
// served. Everything that cuBLAS would refuse is forwarded, so that it answers with its own status.
#pragma once

#include <cublas_v2.h>

#include "dropin/call.h"

namespace gemm::dropin {

// A product whose operands are FP32 and whose alpha and beta are floats. For a single product batch is 1 and strides are 0.
Call describe(cublasOperation_t op_a, cublasOperation_t op_b, Problem sizes, const void* alpha, const void* a, const void* b,
              const void* beta, void* c);

// The same for a batch whose matrices lie where arrays of pointers, on the GPU, say.
Call describe_arrays(cublasOperation_t op_a, cublasOperation_t op_b, Problem sizes, const void* alpha, const void* a,
                     const void* b, const void* beta, const void* c);

template <class Int>
Call describe_sgemm(cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k, const float* alpha, const float* a,
                    Int lda, const float* b, Int ldb, const float* beta, float* c, Int ldc) {
  return describe(op_a, op_b, {m, n, k, Op::N, Op::N, lda, ldb, ldc}, alpha, a, b, beta, c);
}

template <class Int>
Call describe_sgemm_strided(cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k, const float* alpha,
                            const float* a, Int lda, long long stride_a, const float* b, Int ldb, long long stride_b,
                            const float* beta, float* c, Int ldc, long long stride_c, Int batch) {
  return describe(op_a, op_b, {m, n, k, Op::N, Op::N, lda, ldb, ldc, batch, stride_a, stride_b, stride_c}, alpha, a, b, beta,
                  c);
}

template <class Int>
Call describe_sgemm_batched(cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k, const float* alpha,
                            const float* const* a, Int lda, const float* const* b, Int ldb, const float* beta,
                            float* const* c, Int ldc, Int batch) {
  return describe_arrays(op_a, op_b, {m, n, k, Op::N, Op::N, lda, ldb, ldc, batch}, alpha, a, b, beta, c);
}

bool all_fp32(cudaDataType a, cudaDataType b, cudaDataType c);

// What the compute type and the algorithm of the ...Ex functions say. cuBLAS ignores which algorithm is named from sm_80 on,
// but who names one compares algorithms, and is not to be given ours.
Verdict judge_ex(bool fp32, cublasComputeType_t compute, cublasGemmAlgo_t algorithm);

template <class Int>
Call describe_sgemm_ex(cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k, const float* alpha,
                       const void* a, cudaDataType type_a, Int lda, const void* b, cudaDataType type_b, Int ldb,
                       const float* beta, void* c, cudaDataType type_c, Int ldc) {
  if (!all_fp32(type_a, type_b, type_c)) return forwarded(Verdict::not_fp32);
  return describe(op_a, op_b, {m, n, k, Op::N, Op::N, lda, ldb, ldc}, alpha, a, b, beta, c);
}

template <class Int>
Call describe_gemm_ex(cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k, const void* alpha, const void* a,
                      cudaDataType type_a, Int lda, const void* b, cudaDataType type_b, Int ldb, const void* beta, void* c,
                      cudaDataType type_c, Int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  const Verdict verdict = judge_ex(all_fp32(type_a, type_b, type_c), compute, algorithm);
  if (verdict != Verdict::served) return forwarded(verdict);
  return describe(op_a, op_b, {m, n, k, Op::N, Op::N, lda, ldb, ldc}, alpha, a, b, beta, c);
}

template <class Int>
Call describe_gemm_strided_ex(cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k, const void* alpha,
                              const void* a, cudaDataType type_a, Int lda, long long stride_a, const void* b,
                              cudaDataType type_b, Int ldb, long long stride_b, const void* beta, void* c,
                              cudaDataType type_c, Int ldc, long long stride_c, Int batch, cublasComputeType_t compute,
                              cublasGemmAlgo_t algorithm) {
  const Verdict verdict = judge_ex(all_fp32(type_a, type_b, type_c), compute, algorithm);
  if (verdict != Verdict::served) return forwarded(verdict);
  return describe(op_a, op_b, {m, n, k, Op::N, Op::N, lda, ldb, ldc, batch, stride_a, stride_b, stride_c}, alpha, a, b, beta,
                  c);
}

template <class Int>
Call describe_gemm_batched_ex(cublasOperation_t op_a, cublasOperation_t op_b, Int m, Int n, Int k, const void* alpha,
                              const void* const* a, cudaDataType type_a, Int lda, const void* const* b, cudaDataType type_b,
                              Int ldb, const void* beta, void* const* c, cudaDataType type_c, Int ldc, Int batch,
                              cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  const Verdict verdict = judge_ex(all_fp32(type_a, type_b, type_c), compute, algorithm);
  if (verdict != Verdict::served) return forwarded(verdict);
  return describe_arrays(op_a, op_b, {m, n, k, Op::N, Op::N, lda, ldb, ldc, batch}, alpha, a, b, beta, c);
}

}  // namespace gemm::dropin
