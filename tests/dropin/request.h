// A product that is done through one of cuBLAS's functions, as the drop-in carries them.
#pragma once

#include <cublas_v2.h>

#include "dropin/call.h"
#include "fake.h"
#include "kernels/problem.h"

namespace gemm::test {

using dropin::Entry;

constexpr cudaDataType kFloat = CUDA_R_32F;

// Everything that a call may set.
struct Request {
  Entry entry = Entry::sgemm;
  Problem problem = packed_problem(5, 6, 7);
  float alpha = 1.5f, beta = -0.5f;
  cublasOperation_t op_a = CUBLAS_OP_N, op_b = CUBLAS_OP_N;
  cudaDataType type_a = kFloat;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasGemmAlgo_t algorithm = CUBLAS_GEMM_DEFAULT;
  FakeHandle settings;
  bool null_handle = false, null_alpha = false, null_a = false, other_c = false;
  // cublasLtMatmul: attributes that differ from the plain ones.
  FakeAttributes operation, layout_a, layout_c;
  Epilogue epilogue = Epilogue::none;
  Bias bias{};
};

Request request(Entry entry, const Problem& problem);

// Calls the function with these matrices.
cublasStatus_t call(Request r, const float* a, const float* b, float* c);

}  // namespace gemm::test
