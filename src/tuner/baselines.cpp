#include "tuner/baselines.h"

namespace gemm {

Baselines Baselines::open(Device& device) {
  Baselines baselines;
  if (device.info().emulated) return baselines;
  Result<std::unique_ptr<Cublas>> cublas = Cublas::open(device);
  if (cublas)
    baselines.cublas = std::move(*cublas);
  else
    baselines.missing = "no cuBLAS baseline: " + cublas.error();
  Result<std::unique_ptr<CublasLt>> cublaslt = CublasLt::open(device);
  if (cublaslt)
    baselines.cublaslt = std::move(*cublaslt);
  else
    baselines.missing += (baselines.missing.empty() ? "" : "; ") + ("no cuBLASLt baseline: " + cublaslt.error());
  return baselines;
}

}  // namespace gemm
