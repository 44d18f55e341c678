// The ladder of simple kernels (device/ladder.cuh) on the host: for `gemm-bench --ladder` and for learning.
#pragma once

#include <vector>

#include "kernels/device.h"
#include "kernels/kernel_spec.h"
#include "kernels/launch.h"
#include "kernels/problem.h"

namespace gemm {

struct LadderRung {
  const char* name;    // "naive"
  const char* change;  // what is new compared with the rung before
  int tile_m, tile_n;  // of C per block
  int threads;
  int shared_bytes;
};

// From the naive to the vectorised kernel.
const std::vector<LadderRung>& ladder_rungs();

KernelSpec ladder_spec(const LadderRung& rung);

// Why the ladder cannot run this problem (only single products without transposes), or an empty string.
std::string why_not_on_ladder(const Problem& problem);

// Enqueues the product. `kernel` is the built ladder_spec(rung).
Result<bool> launch_ladder(Device& device, const Kernel& kernel, const LadderRung& rung, const Problem& problem,
                           const Operands& operands, Stream stream);

}  // namespace gemm
