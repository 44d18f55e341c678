// Runs a grid of a host-compiled kernel: blocks (clusters) one after the other, the threads of one as fibres that switch at
// barriers, or, under ThreadSanitizer, as threads of the host so that a missing barrier is a reported race.
#pragma once

#include <functional>

#include "emulator/emulated_device.h"
#include "kernels/device.h"

namespace gemm {

struct GridRun {
  std::function<void()> thread_body;  // what one CUDA thread does
  Grid grid;
  int threads = 1;
  int shared_bytes = 0;
  BlockOrder order = BlockOrder::forward;
  // The threads of this warp go on only when no other thread of their blocks can, as no GPU promises that warps keep pace;
  // -1: none. Fibres only.
  int late_warp = -1;
  bool skip_last_block = false;  // a fault for tests
};

// Shared memory is NaN when a block starts, and allocated to the byte. Throws Error when threads of one block wait
// for others that never arrive.
void run_grid(const GridRun& run);

}  // namespace gemm
