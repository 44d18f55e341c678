// A cluster of blocks as fibres in one host thread: who waits switches to the scheduler, which resumes everyone in turn.
#include "emulator/block_runner.h"

#ifndef __SANITIZE_THREAD__
#include <ucontext.h>

#include <memory>
#include <utility>
#include <vector>

#include "kernels/result.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace gemm {
namespace {

// Largest frame seen: 20 KB for a 16x8 thread tile under AddressSanitizer, which pads every array.
constexpr size_t kStackBytes = 96 << 10;

// Tells AddressSanitizer which stack is in use around a switch; nothing otherwise.
#ifdef __SANITIZE_ADDRESS__
void before_switch(void** fake, const void* stack, size_t bytes) { __sanitizer_start_switch_fiber(fake, stack, bytes); }
void after_switch(void* fake, const void** stack, size_t* bytes) { __sanitizer_finish_switch_fiber(fake, stack, bytes); }
#else
void before_switch(void**, const void*, size_t) {}
void after_switch(void*, const void**, size_t*) {}
#endif

struct Fibre {
  ucontext_t context{};
  std::unique_ptr<char[]> stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
  EmulatedThread state;
  void* fake_stack = nullptr;
  bool finished = false;
};

class FibreRunner final : public BlockRunner {
 public:
  explicit FibreRunner(const GridRun& run)
      : run_(run), fibres_(static_cast<size_t>(run.threads) * static_cast<size_t>(run.grid.cluster_y)) {}

  void run(const std::vector<BlockStart>& blocks) override {
    active_ = this;
    ClusterState cluster(shared_of(blocks), run_.threads, &FibreRunner::yield);
    const auto threads = static_cast<size_t>(run_.threads);
    for (size_t f = 0; f < fibres_.size(); ++f)
      start(fibres_[f], thread_state(run_, blocks, f / threads, static_cast<int>(f % threads), cluster));
    finished_ = 0;
    while (finished_ < fibres_.size())
      if (!resume_all(cluster, false) && !resume_all(cluster, true))
        throw Error("threads of one block wait for others that never arrive");
  }

 private:
  // Resumes each thread once, those of the late warp or the others. Whether someone got further.
  bool resume_all(ClusterState& cluster, bool late) {
    const unsigned long long progress = cluster.progress();
    const size_t finished = finished_;
    for (Fibre& fibre : fibres_) {
      const bool is_late = static_cast<int>(fibre.state.thread_index.x) / 32 == run_.late_warp;
      if (!fibre.finished && is_late == late) resume(fibre);
    }
    return finished_ != finished || cluster.progress() != progress;
  }

  static void start(Fibre& fibre, EmulatedThread state) {
    fibre.finished = false;
    fibre.state = std::move(state);
    getcontext(&fibre.context);
    fibre.context.uc_stack.ss_sp = fibre.stack.get();
    fibre.context.uc_stack.ss_size = kStackBytes;
    fibre.context.uc_link = nullptr;
    makecontext(&fibre.context, &FibreRunner::enter, 0);
  }

  void resume(Fibre& fibre) {
    current_ = &fibre;
    current_emulated_thread() = &fibre.state;
    void* fake = nullptr;
    before_switch(&fake, fibre.stack.get(), kStackBytes);
    swapcontext(&scheduler_, &fibre.context);
    after_switch(fake, nullptr, nullptr);
  }

  static void enter() {
    FibreRunner& self = *active_;
    after_switch(nullptr, &self.scheduler_stack_, &self.scheduler_stack_bytes_);
    run_thread(self.run_);
    self.current_->finished = true;
    ++self.finished_;
    before_switch(nullptr, self.scheduler_stack_, self.scheduler_stack_bytes_);
    setcontext(&self.scheduler_);
  }

  static void yield() {
    FibreRunner& self = *active_;
    Fibre& fibre = *self.current_;
    before_switch(&fibre.fake_stack, self.scheduler_stack_, self.scheduler_stack_bytes_);
    swapcontext(&fibre.context, &self.scheduler_);
    after_switch(fibre.fake_stack, &self.scheduler_stack_, &self.scheduler_stack_bytes_);
  }

  static thread_local FibreRunner* active_;

  const GridRun& run_;
  std::vector<Fibre> fibres_;
  size_t finished_ = 0;
  ucontext_t scheduler_{};
  Fibre* current_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_stack_bytes_ = 0;
};

thread_local FibreRunner* FibreRunner::active_ = nullptr;

}  // namespace

std::unique_ptr<BlockRunner> make_block_runner(const GridRun& run) { return std::make_unique<FibreRunner>(run); }

}  // namespace gemm
#endif
