// What each thread remembers of a context, so that a call with a known shape touches nothing that other threads write.
//
//   call:     Visit ──► generation still the same? ──► known plan, known workspace ──► launch
//   change:   generation + 1 ──► wait until no thread is in a Visit ──► free plans and workspace, as nobody sees them now
//
// A Visit is one store to a word of the thread's own. Either it comes before the change looks at that word, and then the
// change waits for its end, or the call sees the new generation and asks the context's shared memory, under its lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "dispatch/plan_memory.h"
#include "dispatch/stream_memory.h"

namespace gemm {

// What calls are counted by: the rules of the selector, with cuBLAS whichever rule named it, and what is not a plan's.
struct CallCounts {
  static constexpr size_t kRules = 6;  // values of Rule
  static constexpr size_t kScaled = kRules, kNewPlans = kRules + 1, kKinds = kRules + 2;
  std::array<uint64_t, kKinds> of{};
};

class ThreadMemory {
 public:
  // Shapes and streams that a thread knows at a time; each has one place. 512 plans take 70 KB for each thread, and a
  // transformer's training step has fewer shapes than that.
  static constexpr size_t kPlans = 512, kSets = 16;

  // Marks the thread as busy with what it remembers.
  class Visit {
   public:
    explicit Visit(ThreadMemory& memory) : memory_(memory) { memory_.busy_.store(true, std::memory_order_seq_cst); }
    ~Visit() { memory_.busy_.store(false, std::memory_order_release); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    ThreadMemory& memory_;
  };

  explicit ThreadMemory(uint64_t context) : context_(context) {}
  ThreadMemory(const ThreadMemory&) = delete;
  ThreadMemory& operator=(const ThreadMemory&) = delete;

  // By the owning thread, during a Visit. Null where it is not known in this generation.
  const Plan* find(const Problem& problem, CallKind kind, uint64_t generation) const {
    const KnownPlan& known = plans_[plan_hash(problem, kind) % kPlans];
    const bool same = known.generation == generation && known.key.kind == kind && known.key.problem == problem;
    return same ? known.plan : nullptr;
  }
  StreamSet* find_set(Stream stream, uint64_t generation) const {
    const KnownSet& known = set_at(stream);
    return known.generation == generation && known.stream == stream ? known.set : nullptr;
  }
  // By the owning thread, while no change is possible.
  void remember(const PlanKey& key, const Plan* plan, uint64_t generation);
  void remember_set(Stream stream, StreamSet* set, uint64_t generation) { set_at(stream) = {generation, stream, set}; }
  void count(size_t kind) {
    // Only this thread writes, so no locked instruction is needed.
    counts_[kind].store(counts_[kind].load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

 private:
  friend class ThreadMemories;
  friend struct ThreadsOwn;
  struct KnownPlan {
    uint64_t generation = 0;  // contexts begin with 1
    const Plan* plan = nullptr;
    PlanKey key{{}, 0};
  };
  struct KnownSet {
    uint64_t generation = 0;
    Stream stream = nullptr;
    StreamSet* set = nullptr;
  };
  // Streams are addresses, or small numbers for the default ones.
  static size_t place_of(Stream stream) {
    return (reinterpret_cast<uintptr_t>(stream) ^ reinterpret_cast<uintptr_t>(stream) >> 8) % kSets;
  }
  const KnownSet& set_at(Stream stream) const { return sets_[place_of(stream)]; }
  KnownSet& set_at(Stream stream) { return sets_[place_of(stream)]; }

  // On a line of its own: other threads only read it, and only when something changes.
  alignas(64) std::atomic<bool> busy_{false};
  std::atomic<bool> thread_is_over_{false}, context_is_gone_{false};
  const uint64_t context_;  // number of the context
  std::array<std::atomic<uint64_t>, CallCounts::kKinds> counts_{};
  std::vector<KnownPlan> plans_ = std::vector<KnownPlan>(kPlans);
  std::array<KnownSet, kSets> sets_;
};

// The memories of all threads that use one context.
class ThreadMemories {
 public:
  ThreadMemories();
  ~ThreadMemories();
  ThreadMemories(const ThreadMemories&) = delete;
  ThreadMemories& operator=(const ThreadMemories&) = delete;

  // The calling thread's memory while a call uses it. It is made by the thread's first call and stays until the thread ends.
  // In destructors that run even later it is one that the end of the call frees; its counts stay.
  class Mine {
   public:
    explicit Mine(ThreadMemories& all);
    ~Mine() {
      if (for_this_call_) all_.end(memory_);
    }
    Mine(const Mine&) = delete;
    Mine& operator=(const Mine&) = delete;
    ThreadMemory& operator*() const { return memory_; }
    ThreadMemory* operator->() const { return &memory_; }

   private:
    ThreadMemories& all_;
    const bool for_this_call_;
    ThreadMemory& memory_;
  };
  Mine mine() { return Mine(*this); }

  // Waits for all Visits that have begun.
  void wait_for_visits();
  // Sums over all threads, those that have ended too.
  CallCounts counts();

 private:
  ThreadMemory& find_or_add();
  std::shared_ptr<ThreadMemory> add();
  void end(ThreadMemory& memory);
  void forget_ended();

  const uint64_t number_;  // of the context, never used twice
  std::mutex mutex_;
  std::vector<std::shared_ptr<ThreadMemory>> all_;
  CallCounts ended_;  // of threads that are over
};

}  // namespace gemm
