#include "dropin/describe.h"

namespace gemm::dropin {
namespace {

// False where cuBLAS has to say what such an operation means.
bool op_of(cublasOperation_t given, Op& op) {
  op = given == CUBLAS_OP_N ? Op::N : Op::T;
  return given == CUBLAS_OP_N || given == CUBLAS_OP_T || given == CUBLAS_OP_C;
}

bool is_aligned(const void* pointer, size_t bytes) { return pointer && reinterpret_cast<uintptr_t>(pointer) % bytes == 0; }

// What does not depend on where the matrices lie. Where there is nothing to multiply it is rare, quick, and full of special
// cases of which arguments count.
bool is_plain(cublasOperation_t op_a, cublasOperation_t op_b, Problem& p, const void* alpha, const void* beta) {
  return op_of(op_a, p.op_a) && op_of(op_b, p.op_b) && is_aligned(alpha, sizeof(float)) && is_aligned(beta, sizeof(float)) &&
         p.m > 0 && p.n > 0 && p.k > 0 && p.batch > 0 && why_refused(p).empty();
}

}  // namespace

Call describe(cublasOperation_t op_a, cublasOperation_t op_b, Problem sizes, const void* alpha, const void* a, const void* b,
              const void* beta, void* c) {
  bool plain = is_plain(op_a, op_b, sizes, alpha, beta);
  for (const void* matrix : {a, b, static_cast<const void*>(c)}) plain = plain && is_aligned(matrix, sizeof(float));
  // Matrices of C on top of each other.
  plain = plain && (sizes.batch == 1 || sizes.stride_c > 0);
  if (!plain) return forwarded(Verdict::unusual);
  return {Verdict::served, sizes, static_cast<const float*>(alpha), a, b, static_cast<const float*>(beta), c};
}

Call describe_arrays(cublasOperation_t op_a, cublasOperation_t op_b, Problem sizes, const void* alpha, const void* a,
                     const void* b, const void* beta, const void* c) {
  bool plain = is_plain(op_a, op_b, sizes, alpha, beta);
  for (const void* array : {a, b, c}) plain = plain && is_aligned(array, sizeof(float*));
  if (!plain) return forwarded(Verdict::unusual);
  // The array itself is only read.
  return {Verdict::served,      sizes, static_cast<const float*>(alpha), a, b, static_cast<const float*>(beta),
          const_cast<void*>(c), true};
}

bool all_fp32(cudaDataType a, cudaDataType b, cudaDataType c) {
  return a == CUDA_R_32F && b == CUDA_R_32F && c == CUDA_R_32F;
}

Verdict judge_ex(bool fp32, cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  if (!fp32 || (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_PEDANTIC)) return Verdict::not_fp32;
  if (algorithm != CUBLAS_GEMM_DEFAULT && algorithm != CUBLAS_GEMM_DEFAULT_TENSOR_OP) return Verdict::algorithm;
  return Verdict::served;
}

}  // namespace gemm::dropin
