// What the threads of one emulated block share beside memory: counting barriers, and the mbarriers of a ring with the copies
// that will arrive on them; and what the blocks of a cluster share.
//
// Asynchronous copies are as late as the hardware may make them: they are done when a thread waits for their barrier and all
// arrivals are in. Until then their destination is NaN.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace gemm {

// How a thread that waits lets others run: a fibre calls this; a thread of the host (null) sleeps until it is woken, since
// hundreds of them share a few cores.
using Yield = void (*)();

// An mbarrier: a phase ends when all threads have arrived and all announced bytes have come.
class EmulatedBarrier {
 public:
  explicit EmulatedBarrier(int arrivals) : expected_(arrivals), missing_(arrivals) {}

  // One arrival; `bytes` more will come by announced copies.
  void arrive(long long bytes = 0);
  // A copy of `bytes` that counts when it is done. 0 bytes: an arrival instead, behind this thread's earlier copies.
  void announce(long long bytes, std::function<void()> copy);
  // Waits until the phase with this parity has ended; does copies that may be late no longer.
  void wait(unsigned parity, Yield yield);

 private:
  struct Announced {
    long long bytes;
    std::function<void()> copy;
  };
  void end_phase_if_complete();

  std::mutex mutex_;
  std::condition_variable may_end_;  // notified when the phase may end, and when it has
  const int expected_;
  int missing_;
  long long bytes_missing_ = 0;
  unsigned phase_ = 0;
  std::vector<Announced> announced_;
};

class BlockState {
 public:
  BlockState(int threads, Yield yield) : threads_(threads), yield_(yield) {}

  // Waits for `threads` threads at barrier `id`; 0 is the whole block's.
  void counting_barrier(int id, int threads);
  void block_barrier() { counting_barrier(0, threads_); }

  EmulatedBarrier* new_barrier(int arrivals);
  void arrive(EmulatedBarrier& barrier, long long bytes = 0);
  void wait(EmulatedBarrier& barrier, unsigned parity);

  // A thread has come to its end. True for the last one.
  bool end_thread();

  // Grows whenever a thread has brought another one further; a block in which it stands still is stuck.
  unsigned long long progress();

 private:
  struct Counter {
    int arrived = 0;
    unsigned generation = 0;
    std::condition_variable ended;
  };
  void note_progress();

  const int threads_;
  const Yield yield_;
  std::mutex mutex_;
  std::map<int, Counter> counters_;
  std::vector<std::unique_ptr<EmulatedBarrier>> barriers_;
  unsigned long long progress_ = 0;
  int ended_ = 0;
};

// The blocks of a cluster, which have a barrier of all their threads and see each other's shared memory. A block that is
// launched alone is a cluster of one.
class ClusterState {
 public:
  // `shared` of each block, which has `threads` threads.
  ClusterState(std::vector<float*> shared, int threads, Yield yield);

  void barrier() { all_.block_barrier(); }
  BlockState& block(size_t rank) { return blocks_[rank]; }
  float* shared(size_t rank) const { return shared_[rank]; }
  unsigned long long progress();

 private:
  const std::vector<float*> shared_;
  std::deque<BlockState> blocks_;
  BlockState all_;  // of which nothing but the barrier is used
};

}  // namespace gemm
