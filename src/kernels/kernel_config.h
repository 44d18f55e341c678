// What the rest of the program asks about a configuration, whatever its family.
#pragma once

#include "kernels/batch_config.h"
#include "kernels/kernel_types.h"
#include "kernels/stream_config.h"
#include "kernels/tile_config.h"

namespace gemm {

// Dynamic shared memory of a launch.
constexpr int shared_bytes(const KernelVariant& v) {
  switch (v.config.family) {
    case Family::stream: return stream_shared_bytes(v);
    case Family::batch: return batch_shared_bytes(v);
    default: return tile_shared_bytes(v);
  }
}

// Shared memory of the op pair that needs most.
constexpr int worst_shared_bytes(const KernelConfig& c) {
  int worst = 0;
  for (int ops = 0; ops < 4; ++ops) {
    const int bytes = shared_bytes({c, ops & 1 ? Op::T : Op::N, ops & 2 ? Op::T : Op::N});
    worst = bytes > worst ? bytes : worst;
  }
  return worst;
}

// Registers per thread that the main loop needs at least.
constexpr int estimated_registers(const KernelConfig& c) {
  switch (c.family) {
    case Family::stream: return estimated_stream_registers(c);
    case Family::batch: return estimated_batch_registers(c);
    default: return estimated_tile_registers(c);
  }
}

// The reason why `c` cannot run on a GPU with these limits, or nullptr. Used to prune the search space, by the kernels'
// static_assert, and by `gemm-tune --list`.
constexpr const char* why_invalid(const KernelConfig& c, const DeviceLimits& limits) {
  switch (c.family) {
    case Family::stream: return why_stream_invalid(c, limits);
    case Family::batch: return why_batch_invalid(c, limits);
    default: return why_tile_invalid(c, limits);
  }
}

}  // namespace gemm
