// A cluster of blocks as host threads, for ThreadSanitizer: barriers are real, so a read without one is a race that it
// reports.
#include "emulator/block_runner.h"

#ifdef __SANITIZE_THREAD__
#include <thread>
#include <vector>

namespace gemm {
namespace {

class ThreadRunner final : public BlockRunner {
 public:
  explicit ThreadRunner(const GridRun& run) : run_(run) {}

  void run(const std::vector<BlockStart>& blocks) override {
    ClusterState cluster(shared_of(blocks), run_.threads, nullptr);
    std::vector<std::jthread> threads;
    threads.reserve(blocks.size() * static_cast<size_t>(run_.threads));
    for (size_t rank = 0; rank < blocks.size(); ++rank)
      for (int t = 0; t < run_.threads; ++t)
        threads.emplace_back([&, rank, t] {
          EmulatedThread state = thread_state(run_, blocks, rank, t, cluster);
          current_emulated_thread() = &state;
          run_thread(run_);
        });
  }

 private:
  const GridRun& run_;
};

}  // namespace

std::unique_ptr<BlockRunner> make_block_runner(const GridRun& run) { return std::make_unique<ThreadRunner>(run); }

}  // namespace gemm
#endif
