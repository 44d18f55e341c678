// A block as host threads, for ThreadSanitizer: barriers are real, so a read without one is a race that it reports.
#include "emulator/block_runner.h"

#ifdef __SANITIZE_THREAD__
#include <barrier>
#include <thread>
#include <vector>

namespace gemm {
namespace {

thread_local std::barrier<>* t_barrier = nullptr;

class ThreadRunner final : public BlockRunner {
 public:
  explicit ThreadRunner(const GridRun& run) : run_(run) {}

  void run(const Index3& index, float* shared) override {
    std::barrier<> barrier(run_.threads);
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<size_t>(run_.threads));
    for (int t = 0; t < run_.threads; ++t)
      threads.emplace_back([&, t] {
        t_barrier = &barrier;
        EmulatedThread state = thread_state(run_, index, t, shared, [] { t_barrier->arrive_and_wait(); });
        current_emulated_thread() = &state;
        run_.thread_body();
        // A thread that has left the kernel no longer holds the others up, as on a GPU.
        barrier.arrive_and_drop();
      });
  }

 private:
  const GridRun& run_;
};

}  // namespace

std::unique_ptr<BlockRunner> make_block_runner(const GridRun& run) { return std::make_unique<ThreadRunner>(run); }

}  // namespace gemm
#endif
