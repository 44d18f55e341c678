#include "emulator/block_state.h"

#include <utility>

namespace gemm {
namespace {

// Waits until `done`, which is asked with `lock` held; `changed` is notified when its answer may have changed.
template <class Done>
void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, Yield yield, Done done) {
  if (yield == nullptr) {
    changed.wait(lock, done);
    return;
  }
  while (!done()) {
    lock.unlock();
    yield();
    lock.lock();
  }
}

}  // namespace

void EmulatedBarrier::arrive(long long bytes) {
  const std::lock_guard lock(mutex_);
  bytes_missing_ += bytes;
  --missing_;
  // A phase ends by itself, whether someone waits or not; only copies are late.
  if (announced_.empty())
    end_phase_if_complete();
  else
    may_end_.notify_one();  // whoever waits can end the phase, and wakes the others then
}

void EmulatedBarrier::announce(long long bytes, std::function<void()> copy) {
  const std::lock_guard lock(mutex_);
  announced_.push_back({bytes, std::move(copy)});
  may_end_.notify_one();
}

void EmulatedBarrier::wait(unsigned parity, Yield yield) {
  std::unique_lock lock(mutex_);
  wait_until(lock, may_end_, yield, [&] {
    end_phase_if_complete();
    return (phase_ & 1) != (parity & 1);
  });
}

void EmulatedBarrier::end_phase_if_complete() {
  long long bytes = 0;
  int arrivals = 0;
  for (const Announced& one : announced_) {
    bytes += one.bytes;
    arrivals += one.bytes == 0 ? 1 : 0;
  }
  if (missing_ != arrivals || bytes_missing_ != bytes) return;
  for (const Announced& one : announced_) one.copy();
  announced_.clear();
  missing_ = expected_;
  bytes_missing_ = 0;
  ++phase_;
  may_end_.notify_all();
}

void BlockState::note_progress() {
  const std::lock_guard lock(mutex_);
  ++progress_;
}

unsigned long long BlockState::progress() {
  const std::lock_guard lock(mutex_);
  return progress_;
}

void BlockState::counting_barrier(int id, int threads) {
  std::unique_lock lock(mutex_);
  Counter& counter = counters_[id];
  const unsigned generation = counter.generation;
  ++progress_;
  if (++counter.arrived == threads) {
    counter.arrived = 0;
    ++counter.generation;
    counter.ended.notify_all();
    return;
  }
  wait_until(lock, counter.ended, yield_, [&] { return counter.generation != generation; });
}

bool BlockState::end_thread() {
  const std::lock_guard lock(mutex_);
  return ++ended_ == threads_;
}

EmulatedBarrier* BlockState::new_barrier(int arrivals) {
  const std::lock_guard lock(mutex_);
  barriers_.push_back(std::make_unique<EmulatedBarrier>(arrivals));
  return barriers_.back().get();
}

void BlockState::arrive(EmulatedBarrier& barrier, long long bytes) {
  barrier.arrive(bytes);
  note_progress();
}

void BlockState::wait(EmulatedBarrier& barrier, unsigned parity) {
  barrier.wait(parity, yield_);
  note_progress();
}

ClusterState::ClusterState(std::vector<float*> shared, int threads, Yield yield)
    : shared_(std::move(shared)), all_(threads * static_cast<int>(shared_.size()), yield) {
  for (size_t rank = 0; rank < shared_.size(); ++rank) blocks_.emplace_back(threads, yield);
}

unsigned long long ClusterState::progress() {
  unsigned long long sum = all_.progress();
  for (BlockState& block : blocks_) sum += block.progress();
  return sum;
}

}  // namespace gemm
