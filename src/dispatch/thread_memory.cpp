#include "dispatch/thread_memory.h"

#include <thread>

namespace gemm {

static_assert(static_cast<size_t>(Rule::reproducible) + 1 == CallCounts::kRules);

// A thread's memories of all contexts.
struct ThreadsOwn {
  std::vector<std::shared_ptr<ThreadMemory>> all;

  ThreadMemory* find(uint64_t context) const {
    for (const auto& memory : all)
      if (memory->context_ == context) return memory.get();
    return nullptr;
  }
  void forget_gone_contexts() {
    std::erase_if(all, [](const auto& memory) { return memory->context_is_gone_.load(std::memory_order_acquire); });
  }
  ~ThreadsOwn();
};

namespace {

uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// Plain thread_local variables, which cost nothing to reach: the one used last, and whether `own` is no more.
thread_local ThreadMemory* last_used = nullptr;
thread_local bool own_is_gone = false;
thread_local ThreadsOwn own;

}  // namespace

ThreadsOwn::~ThreadsOwn() {
  own_is_gone = true;
  last_used = nullptr;
  for (const auto& memory : all) memory->thread_is_over_.store(true, std::memory_order_release);
}

void ThreadMemory::remember(const PlanKey& key, const Plan* plan, uint64_t generation) {
  KnownPlan& known = plans_[PlanKeyHash()(key) % kPlans];
  known.generation = generation;
  known.plan = plan;
  known.key = key;
}

ThreadMemories::ThreadMemories() : number_(next_number()) {}

ThreadMemories::~ThreadMemories() {
  for (const auto& memory : all_) memory->context_is_gone_.store(true, std::memory_order_release);
}

// Where `own` is gone, nothing is left in the thread that could say when a memory is over.
ThreadMemories::Mine::Mine(ThreadMemories& all)
    : all_(all), for_this_call_(own_is_gone), memory_(for_this_call_ ? *all.add() : all.find_or_add()) {}

ThreadMemory& ThreadMemories::find_or_add() {
  if (last_used && last_used->context_ == number_) return *last_used;
  ThreadMemory* known = own.find(number_);
  if (!known) {
    own.forget_gone_contexts();
    own.all.push_back(add());
    known = own.all.back().get();
  }
  last_used = known;
  return *known;
}

std::shared_ptr<ThreadMemory> ThreadMemories::add() {
  auto memory = std::make_shared<ThreadMemory>(number_);
  const std::lock_guard<std::mutex> lock(mutex_);
  forget_ended();
  all_.push_back(memory);
  return memory;
}

void ThreadMemories::end(ThreadMemory& memory) {
  memory.thread_is_over_.store(true, std::memory_order_release);
  const std::lock_guard<std::mutex> lock(mutex_);
  forget_ended();
}

// Threads come and go: their counts stay.
void ThreadMemories::forget_ended() {
  std::erase_if(all_, [&](const auto& memory) {
    if (!memory->thread_is_over_.load(std::memory_order_acquire)) return false;
    for (size_t kind = 0; kind < CallCounts::kKinds; ++kind)
      ended_.of[kind] += memory->counts_[kind].load(std::memory_order_relaxed);
    return true;
  });
}

void ThreadMemories::wait_for_visits() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& memory : all_)
    while (memory->busy_.load(std::memory_order_seq_cst)) std::this_thread::yield();
}

CallCounts ThreadMemories::counts() {
  const std::lock_guard<std::mutex> lock(mutex_);
  forget_ended();
  CallCounts sum = ended_;
  for (const auto& memory : all_)
    for (size_t kind = 0; kind < CallCounts::kKinds; ++kind)
      sum.of[kind] += memory->counts_[kind].load(std::memory_order_relaxed);
  return sum;
}

}  // namespace gemm
