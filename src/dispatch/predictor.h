// The fastest ways to serve a problem that nobody tuned, by the calibrated cost model. Made once for a table and a device.
#pragma once

#include <array>
#include <vector>

#include "dispatch/learned_model.h"
#include "dispatch/table.h"

namespace gemm {

class Predictor {
 public:
  Predictor(const Table& table, const DeviceInfo& device);

  // Kernels that can be predicted: those with traits or a factor, that run on the device.
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
  Predictions predict(const Problem& problem, int64_t workspace) const;

 private:
  struct Kernel {
    KernelCost cost;
    std::vector<FirstLayer> traits;  // one for each network; none where a factor is all that is known
    double log_factor;
    bool clusters;         // may form them on the device
    bool gains_by_copies;  // of operands
  };
  struct Product;    // the problem, or what it is on copies of its operands
  struct Shortlist;  // of ways to serve a problem

  void shorten(const Product& product, int64_t workspace, Shortlist& list) const;
  void correct(Shortlist& list) const;
  double cublas_us(const Product& product) const;

  DeviceInfo device_;
  std::vector<Kernel> kernels_;
  std::vector<TimeNetwork> networks_;
};

}  // namespace gemm
