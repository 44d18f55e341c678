#include "dropin/handle_state.h"

#include "dropin/real_library.h"

namespace gemm::dropin {
namespace {

// Setters are left alone and the getters asked at each call: they are a few nanoseconds, and what the program changed
// through any path, at any time, is seen.
struct Getters {
  decltype(&cublasGetStream_v2) stream = find<decltype(&cublasGetStream_v2)>("cublasGetStream_v2");
  decltype(&cublasGetPointerMode_v2) pointer_mode = find<decltype(&cublasGetPointerMode_v2)>("cublasGetPointerMode_v2");
  decltype(&cublasGetMathMode) math_mode = find<decltype(&cublasGetMathMode)>("cublasGetMathMode");
  decltype(&cublasGetSmCountTarget) sm_limit = find<decltype(&cublasGetSmCountTarget)>("cublasGetSmCountTarget");

  bool complete() const { return stream && pointer_mode && math_mode && sm_limit; }

 private:
  template <class Function>
  static Function find(const char* name) {
    return reinterpret_cast<Function>(real_cublas().function(name));
  }
};

// Modes in which cuBLAS itself computes FP32 products in FP32. The other bits speak of other types.
bool is_fp32(cublasMath_t mode) {
  const int other_types = CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION | 8;  // 8: CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH
  const int fp32_mode = static_cast<int>(mode) & ~other_types;
  return fp32_mode == CUBLAS_DEFAULT_MATH || fp32_mode == CUBLAS_PEDANTIC_MATH;
}

}  // namespace

Verdict judge(cublasHandle_t handle, Call& call, cudaStream_t* stream) {
  static const Getters get;
  if (!handle || !get.complete()) return Verdict::unusual;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  int sm_limit = 0;
  if (get.pointer_mode(handle, &pointers) != CUBLAS_STATUS_SUCCESS ||
      get.math_mode(handle, &math) != CUBLAS_STATUS_SUCCESS || get.sm_limit(handle, &sm_limit) != CUBLAS_STATUS_SUCCESS ||
      get.stream(handle, stream) != CUBLAS_STATUS_SUCCESS)
    return Verdict::unusual;
  call.device_scalars = pointers == CUBLAS_POINTER_MODE_DEVICE;
  if (!is_fp32(math)) return Verdict::reduced_math;
  return sm_limit == 0 ? Verdict::served : Verdict::sm_limit;
}

}  // namespace gemm::dropin
