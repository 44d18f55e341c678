// One call of an interposed cuBLAS function as the drop-in sees it: which function, what it computes, and whether
// libdispatch may serve it.
#pragma once

#include <array>

#include "kernels/launch.h"

namespace gemm::dropin {

enum class Entry {
  sgemm,
  sgemm_64,
  sgemm_strided,
  sgemm_strided_64,
  sgemm_batched,
  sgemm_batched_64,
  sgemm_ex,
  sgemm_ex_64,
  gemm_ex,
  gemm_ex_64,
  gemm_strided_ex,
  gemm_strided_ex_64,
  gemm_batched_ex,
  gemm_batched_ex_64,
  lt_matmul,
};

// The exported symbols, in the order of Entry.
inline constexpr std::array kEntryNames = {
    "cublasSgemm_v2",
    "cublasSgemm_v2_64",
    "cublasSgemmStridedBatched",
    "cublasSgemmStridedBatched_64",
    "cublasSgemmBatched",
    "cublasSgemmBatched_64",
    "cublasSgemmEx",
    "cublasSgemmEx_64",
    "cublasGemmEx",
    "cublasGemmEx_64",
    "cublasGemmStridedBatchedEx",
    "cublasGemmStridedBatchedEx_64",
    "cublasGemmBatchedEx",
    "cublasGemmBatchedEx_64",
    "cublasLtMatmul",
};

// What became of a call: served, or the first reason why it went to the real library.
enum class Verdict {
  served,
  failed,          // the GPU refused our launch: an error for the caller, since C may be partly written
  off,             // GEMM_DROPIN=off
  not_fp32,        // other types, or a compute type that allows less than FP32
  reduced_math,    // the handle or the environment allows TF32 or emulated FP32
  algorithm,       // the caller names an algorithm
  scalar_vectors,  // cublasLtMatmul with an alpha for each row
  epilogue,        // cublasLtMatmul with scaling, or with more than a bias in FP32 and ReLU
  layout,          // cublasLtMatmul with layouts other than plain column-major ones
  sm_limit,        // the caller limits the number of multiprocessors
  unusual,         // arguments that cuBLAS has to judge, or that leave nothing to multiply
  other_context,   // no GPU is current, or the stream lives elsewhere
  no_context,      // libdispatch cannot serve this GPU
  cublas_chosen,   // libdispatch would come back to cuBLAS, mostly since its table says that cuBLAS is faster
  refused,         // libdispatch gave up before it touched C
};

// For people, in the order of Verdict.
inline constexpr std::array kVerdictNames = {
    "served", "failed",   "off",     "not FP32",      "TF32 or emulation", "algorithm",     "scalar vectors", "epilogue",
    "layout", "SM limit", "unusual", "other context", "GPU not supported", "cuBLAS chosen", "refused"};

// A product that cuBLAS was asked for. `verdict` is what the arguments alone say; the rest is meaningful where it is served.
struct Call {
  Verdict verdict = Verdict::served;
  Problem problem;
  const float* alpha = nullptr;
  const void* a = nullptr;  // floats; where pointer_arrays is set, pointers to floats
  const void* b = nullptr;
  const float* beta = nullptr;
  void* c = nullptr;
  bool pointer_arrays = false;
  bool device_scalars = false;  // alpha and beta lie on the GPU; known once the handle has been asked
  Epilogue epilogue = Epilogue::none;
  Bias bias{};
};

inline Call forwarded(Verdict why) {
  Call call;
  call.verdict = why;
  return call;
}

}  // namespace gemm::dropin
