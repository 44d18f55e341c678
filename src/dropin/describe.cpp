#include "dropin/describe.h"

namespace gemm::dropin {
namespace {

// False where cuBLAS has to say what such an operation means.
bool op_of(cublasOperation_t given, Op& op) {
  op = given == CUBLAS_OP_N ? Op::N : Op::T;
  return given == CUBLAS_OP_N || given == CUBLAS_OP_T || given == CUBLAS_OP_C;
}

bool is_float_pointer(const void* pointer) { return pointer && reinterpret_cast<uintptr_t>(pointer) % sizeof(float) == 0; }

}  // namespace

Call describe(cublasOperation_t op_a, cublasOperation_t op_b, Problem sizes, const void* alpha, const void* a, const void* b,
              const void* beta, void* c) {
  Problem& p = sizes;
  bool plain = op_of(op_a, p.op_a) && op_of(op_b, p.op_b) && alpha && beta;
  plain = plain && is_float_pointer(a) && is_float_pointer(b) && is_float_pointer(c);
  // Nothing to multiply: rare, quick, and full of special cases of which arguments count.
  plain = plain && p.m > 0 && p.n > 0 && p.k > 0 && p.batch > 0 && why_refused(p).empty();
  // Matrices of C on top of each other.
  plain = plain && (p.batch == 1 || p.stride_c > 0);
  if (!plain) return forwarded(Verdict::unusual);
  return {Verdict::served,
          p,
          static_cast<const float*>(alpha),
          static_cast<const float*>(a),
          static_cast<const float*>(b),
          static_cast<const float*>(beta),
          static_cast<float*>(c)};
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
