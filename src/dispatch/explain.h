// Words for people about how a problem is served: gemm_explain and gemm-inspect.
#pragma once

#include <string>
#include <vector>

#include "dispatch/selector.h"
#include "dispatch/table.h"
#include "kernels/device.h"
#include "kernels/problem.h"

namespace gemm {

// A few lines: problem, rule, kernel, split, expected time, table, and `others`, what else was considered.
std::string explain(const Problem& problem, const Candidate& candidate, const std::string& table_source,
                    const std::vector<std::string>& others);

// The same without a device to build on: the decision's first candidate, and the rest as others.
std::string explain(const Problem& problem, const Decision& decision, const std::string& table_source);

// "/…/nvidia-h200.json (measured on NVIDIA H200; exact)" or "(…; borrowed for NVIDIA H200 NVL)".
std::string describe_source(const Table& table, const std::string& path, const DeviceInfo& device);

}  // namespace gemm
