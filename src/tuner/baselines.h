// What own kernels are compared with: cuBLAS as a user calls it, and the best of cuBLASLt's heuristics.
#pragma once

#include <memory>
#include <string>

#include "dispatch/cublas.h"
#include "kernels/device.h"
#include "tuner/cublaslt.h"

namespace gemm {

struct Baselines {
  std::unique_ptr<Cublas> cublas;      // null where there is none
  std::unique_ptr<CublasLt> cublaslt;  // null where there is none
  std::string missing;                 // why one of them is null; empty on an emulated device, which has neither

  static Baselines open(Device& device);
};

}  // namespace gemm
