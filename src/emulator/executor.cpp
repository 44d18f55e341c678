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

std::vector<unsigned long long> block_sequence(const GridRun& run) {
  std::vector<unsigned long long> sequence(static_cast<size_t>(run.grid.x) * run.grid.y * run.grid.z);
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
  for (unsigned long long b : block_sequence(run)) {
    // A fresh allocation for every block: AddressSanitizer sees its exact end, and 16-byte alignment is what new gives.
    std::vector<float> shared(floats, std::numeric_limits<float>::quiet_NaN());
    const Index3 index{static_cast<unsigned>(b % run.grid.x), static_cast<unsigned>(b / run.grid.x % run.grid.y),
                       static_cast<unsigned>(b / run.grid.x / run.grid.y)};
    runner->run(index, shared.data());
  }
}

}  // namespace gemm
