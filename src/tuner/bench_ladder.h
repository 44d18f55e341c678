// gemm-bench --ladder: the simple kernels one after the other, then the tuned kernel and the baselines, on one square.
#pragma once

#include <string>
#include <vector>

#include "tuner/bench.h"

namespace gemm {

struct LadderTime {
  std::string name;
  std::string change;  // what is new compared with the line before
  double us = 0;       // median
  double gflops = 0;
};

// Everything is timed interleaved. `table` may be null. Failure: not enough memory, a kernel that cannot be built, or the
// emulated device, which has no times for these kernels. Throws Error when the device fails.
Result<std::vector<LadderTime>> time_ladder(BenchContext& context, const Table* table, int64_t size, int rounds);

std::string ladder_report(const std::vector<LadderTime>& times, int64_t size);

}  // namespace gemm
