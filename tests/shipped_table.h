// The table that the repository ships for the H200.
#pragma once

#include <vector>

#include "dispatch/table.h"

namespace gemm::test {

inline const Table& shipped_table() {
  static const Table table = load_table(GEMM_SOURCE_DIR "/configs/nvidia-h200.json", nullptr).value_or_throw();
  return table;
}

inline std::vector<KernelConfig> configs_of(const Table& table) {
  std::vector<KernelConfig> configs;
  for (const PortfolioKernel& kernel : table.portfolio) configs.push_back(kernel.config);
  return configs;
}

}  // namespace gemm::test
