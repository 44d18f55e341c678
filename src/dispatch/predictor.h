// The fastest ways to serve a problem that nobody tuned, by the calibrated cost model. Made once for a table and a device.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "dispatch/calibrated_model.h"
#include "dispatch/table.h"

namespace gemm {

class Predictor {
 public:
  Predictor(const Table& table, const DeviceInfo& device);

  // Kernels that can be predicted: those with factors, that run on the device.
  size_t kernels() const { return kernels_.size(); }

  struct Prediction {
    double us = 0;
    Choice choice;
  };
  static constexpr size_t kMost = 4;
  struct Predictions {
    size_t count = 0;
    std::array<Prediction, kMost> best;  // fastest first, of different kernels; each may run with this workspace
    double cublas_us = 0;                // 0 where it is not known
  };
  // No allocation.
  Predictions predict(const Problem& problem, int64_t workspace) const;

 private:
  struct Kernel {
    KernelCost cost;
    CostFactors factors;
    size_t column;  // of the log ratios
    bool clusters;  // may form them on the device
  };
  struct Search;

  DeviceInfo device_;
  std::vector<Kernel> kernels_;
  std::optional<CostFactors> cublas_;
  size_t columns_;
  Neighbourhood neighbourhood_;
};

}  // namespace gemm
