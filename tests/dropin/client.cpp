// A library that is linked with cuBLAS and calls it, as PyTorch's are.
#include <cublasLt.h>
#include <cublas_v2.h>

#include <cstdio>

#include "fake.h"

extern "C" const char* fake_cublas_calls();
extern "C" const char* fake_cublaslt_calls();

extern "C" __attribute__((visibility("default"))) void run_client() {
  gemm::test::FakeHandle settings;
  auto* const handle = reinterpret_cast<cublasHandle_t>(&settings);
  const float one = 1;
  float memory[64] = {};
  const int plain = cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 3, 4, &one, memory, 2, memory, 4, &one, memory, 2);
  const int wrong =
      cublasSgemm_v2_64(handle, CUBLAS_OP_N, CUBLAS_OP_N, -1, 3, 4, &one, memory, 2, memory, 4, &one, memory, 2);
  const int ex = cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 5, 6, 7, &one, memory, CUDA_R_32F, 5, memory, CUDA_R_32F, 7,
                              &one, memory, CUDA_R_32F, 5, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  const int light = cublasLtMatmul(nullptr, nullptr, &one, memory, nullptr, memory, nullptr, &one, memory, nullptr, memory,
                                   nullptr, nullptr, nullptr, 0, nullptr);
  std::printf("statuses %d %d %d %d\ncalls %s%s\n", plain, wrong, ex, light, fake_cublas_calls(), fake_cublaslt_calls());
  std::fflush(stdout);
}
