// The fastest ways to serve a problem that nobody tuned, by the calibrated cost model. Made once for a table and a device.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "dispatch/kernel_search.h"
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
    // 0 where it is not known. Where it is clearly slower than the best kernel, not all networks were asked.
    double cublas_us = 0;
  };
  Predictions predict(const Problem& problem, int64_t workspace) const;

 private:
  struct Kernel {
    std::vector<FirstLayer> traits;  // one for each network; none where a factor is all that is known
    double log_factor;
  };
  struct Group {
    KernelGroup kernels;
    size_t first;    // of them in `kernels_`, where they follow each other
    size_t gaining;  // how many, at the beginning, gain by copies of operands
  };
  struct Product;    // the problem, or what it is on copies of its operands
  struct Products;   // all of these
  struct Ways;       // in which kernels may serve them
  struct Shortlist;  // the best of these

  void add_to_groups(const KernelCost& cost, bool may_cluster);
  void search(size_t product_number, const Product& product, Ways& ways) const;
  void take_round(Ways& ways, double hopeless_us, const CostProblem& problem, Shortlist& list) const;
  double ask(size_t network, std::span<const size_t> places, Products& products, Shortlist& list) const;
  double correct(Ways& ways, Products& products, Shortlist& list) const;
  double cublas_us(Product& product, double best_us) const;

  DeviceInfo device_;
  // In the same order: by formula, and of each those that gain by copies of operands first.
  std::vector<KernelCost> costs_;
  std::vector<Kernel> kernels_;
  std::vector<Group> groups_;  // of all of them
  KernelSearch search_ = kernel_search();
  std::vector<TimeNetwork> networks_;
  bool knows_cublas_ = false;  // all of them
};

}  // namespace gemm
