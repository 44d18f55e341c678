#include "emulator/executor.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "emulator/block_runner.h"

namespace gemm {

EmulatedThread*& current_emulated_thread() {
  thread_local EmulatedThread* current = nullptr;
  return current;
}

namespace {

// The clusters of the grid, by number, in the order in which they run; without clusters, the blocks.
std::vector<unsigned long long> cluster_sequence(const GridRun& run) {
  const size_t blocks = static_cast<size_t>(run.grid.x) * run.grid.y * run.grid.z;
  std::vector<unsigned long long> sequence(blocks / run.grid.cluster_y);
  std::iota(sequence.begin(), sequence.end(), 0ull);
  if (run.skip_last_block && !sequence.empty()) sequence.pop_back();
  if (run.order == BlockOrder::reverse) std::reverse(sequence.begin(), sequence.end());
  if (run.order == BlockOrder::shuffled) std::shuffle(sequence.begin(), sequence.end(), std::mt19937(20240229));
  return sequence;
}

}  // namespace

void run_grid(const GridRun& run) {
  const std::unique_ptr<BlockRunner> runner = make_block_runner(run);
  const size_t floats = static_cast<size_t>(run.shared_bytes) / sizeof(float);
  const unsigned clusters_y = run.grid.y / run.grid.cluster_y;
  for (const unsigned long long number : cluster_sequence(run)) {
    // Fresh allocations for every block: AddressSanitizer sees their exact end, and 16-byte alignment is what new gives.
    std::vector<std::vector<float>> shared(run.grid.cluster_y,
                                           std::vector<float>(floats, std::numeric_limits<float>::quiet_NaN()));
    const auto x = static_cast<unsigned>(number % run.grid.x), y = static_cast<unsigned>(number / run.grid.x % clusters_y),
               z = static_cast<unsigned>(number / run.grid.x / clusters_y);
    std::vector<BlockStart> blocks;
    for (unsigned rank = 0; rank < run.grid.cluster_y; ++rank)
      blocks.push_back({{x, y * run.grid.cluster_y + rank, z}, shared[rank].data()});
    runner->run(blocks);
  }
}

}  // namespace gemm
