// The search space: which kernel configurations may be tried.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/kernel_config.h"
#include "kernels/result.h"

namespace gemm {

// Every combination of the values listed for each parameter, for kernels of one kind.
struct SpaceFamily {
  std::string name;
  Family family = Family::tile;
  std::vector<int> BM, BN, BK, WM, WN, WNITER, TM, TN, stages, slices, min_blocks;
  std::vector<LoadPath> load;
  std::vector<FmaOrder> order;
  std::vector<AccInit> acc_init;

  size_t combinations() const;
};

struct SearchSpace {
  std::vector<SpaceFamily> families;
  std::vector<KernelConfig> extra;  // single configurations beside the families

  size_t combinations() const;  // of all families, and the extra ones
  // Calls `visit` for every configuration, valid or not; one that several families list is visited several times.
  void for_each(const std::function<void(const KernelConfig&)>& visit) const;
};

// Reads configs/space.json or a file like it. Failure: the reason, with file and parameter.
Result<SearchSpace> read_space(const std::string& path);
Result<SearchSpace> parse_space(const std::string& text, const std::string& name);

// The configurations that can run within these limits, each once, in a fixed order.
std::vector<KernelConfig> valid_configs(const SearchSpace& space, const DeviceLimits& limits);

// A space of exactly these configurations.
SearchSpace space_of(std::vector<KernelConfig> configs);

// FNV-1a, as 16 hexadecimal digits; what logs compare configurations and sources by.
std::string hash_of(const std::string& text);
std::string hash_of(const std::vector<KernelConfig>& configs);
std::string kernel_source_hash();

}  // namespace gemm
