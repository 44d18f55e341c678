// The CUDA threads of one block, or of the blocks of one cluster, on the host; executor.cpp has the loop over the grid.
// Exactly one implementation is compiled.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "emulator/executor.h"
#include "emulator/platform_host.h"

namespace gemm {

struct BlockStart {
  Index3 index;
  float* shared;
};

class BlockRunner {
 public:
  virtual ~BlockRunner() = default;
  // Runs all threads of a cluster's blocks to their end.
  virtual void run(const std::vector<BlockStart>& blocks) = 0;
};

std::unique_ptr<BlockRunner> make_block_runner(const GridRun& run);

inline std::vector<float*> shared_of(const std::vector<BlockStart>& blocks) {
  std::vector<float*> shared;
  shared.reserve(blocks.size());
  for (const BlockStart& block : blocks) shared.push_back(block.shared);
  return shared;
}

// The state of thread `thread` of block `rank` of a cluster that starts.
inline EmulatedThread thread_state(const GridRun& run, const std::vector<BlockStart>& blocks, size_t rank, int thread,
                                   ClusterState& cluster) {
  EmulatedThread state;
  state.thread_index = {static_cast<unsigned>(thread), 0, 0};
  state.block_index = blocks[rank].index;
  state.block_size = {static_cast<unsigned>(run.threads), 1, 1};
  state.grid_size = {run.grid.x, run.grid.y, run.grid.z};
  state.shared = blocks[rank].shared;
  state.block = &cluster.block(rank);
  state.cluster = &cluster;
  return state;
}

// The current thread's work. Shared memory ends with its block's last thread: what a peer reads then is NaN.
inline void run_thread(const GridRun& run) {
  run.thread_body();
  const EmulatedThread& state = emulated_thread();
  if (state.block->end_thread())
    std::fill_n(state.shared, static_cast<size_t>(run.shared_bytes) / sizeof(float),
                std::numeric_limits<float>::quiet_NaN());
}

}  // namespace gemm
