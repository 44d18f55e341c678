// One block of CUDA threads on the host; executor.cpp has the loop over the grid. Exactly one implementation is compiled.
#pragma once

#include <memory>

#include "emulator/executor.h"
#include "emulator/platform_host.h"

namespace gemm {

class BlockRunner {
 public:
  virtual ~BlockRunner() = default;
  // Runs all threads of block `index` to their end.
  virtual void run(const Index3& index, float* shared) = 0;
};

std::unique_ptr<BlockRunner> make_block_runner(const GridRun& run);

// The state of thread `thread` of a block that starts.
inline EmulatedThread thread_state(const GridRun& run, const Index3& block, int thread, float* shared, void (*barrier)()) {
  EmulatedThread state;
  state.thread_index = {static_cast<unsigned>(thread), 0, 0};
  state.block_index = block;
  state.block_size = {static_cast<unsigned>(run.threads), 1, 1};
  state.grid_size = {run.grid.x, run.grid.y, run.grid.z};
  state.shared = shared;
  state.barrier = barrier;
  return state;
}

}  // namespace gemm
