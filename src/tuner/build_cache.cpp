#include "tuner/build_cache.h"

#include <chrono>

namespace gemm {

BuildCache::BuildCache(std::unique_ptr<Device> device, int threads, size_t most_loaded)
    : device_(std::move(device)), most_loaded_(most_loaded) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { build_in_background(); });
}

BuildCache::~BuildCache() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  entries_.clear();  // kernels before the device that they were loaded on
}

void BuildCache::prefetch(const KernelSpec& spec) {
  if (threads_.empty()) return;
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[spec.name];
  if (entry.state != Entry::State::idle) return;
  entry.spec = spec;
  entry.state = Entry::State::queued;
  queue_.push_back(&entry);
  changed_.notify_all();
}

void BuildCache::prefetch_first(const std::vector<KernelSpec>& specs) {
  if (threads_.empty()) return;
  const std::lock_guard lock(mutex_);
  for (auto spec = specs.rbegin(); spec != specs.rend(); ++spec) {
    Entry& entry = entries_[spec->name];
    if (entry.state == Entry::State::queued) std::erase(queue_, &entry);
    if (entry.state != Entry::State::idle && entry.state != Entry::State::queued) continue;
    entry.spec = *spec;
    entry.state = Entry::State::queued;
    queue_.push_front(&entry);
  }
  changed_.notify_all();
}

double BuildCache::build_ms(const KernelSpec& spec) {
  const std::lock_guard lock(mutex_);
  const auto place = entries_.find(spec.name);
  return place == entries_.end() ? 0 : place->second.ms;
}

Result<std::shared_ptr<Kernel>> BuildCache::build(const KernelSpec& spec) {
  std::unique_lock lock(mutex_);
  Entry& entry = entries_[spec.name];
  while (entry.state != Entry::State::done) {
    if (entry.state == Entry::State::building) {
      changed_.wait(lock);
      continue;
    }
    // Not under way yet: no need to wait for a background thread.
    entry.spec = spec;
    build_entry(entry, lock);
  }
  entry.last_use = ++uses_;
  return *entry.result;
}

std::vector<BuildCache::Built> BuildCache::take_unused() {
  std::vector<Built> unused;
  while (loaded_ > most_loaded_) {
    Entry* oldest = nullptr;
    for (auto& [name, entry] : entries_)
      if (entry.state == Entry::State::done && (oldest == nullptr || entry.last_use < oldest->last_use)) oldest = &entry;
    unused.push_back(std::move(oldest->result));
    oldest->state = Entry::State::idle;
    --loaded_;
  }
  return unused;
}

void BuildCache::build_entry(Entry& entry, std::unique_lock<std::mutex>& lock) {
  entry.state = Entry::State::building;
  lock.unlock();
  const auto start = std::chrono::steady_clock::now();
  Built result;
  try {
    result = std::make_shared<Result<std::shared_ptr<Kernel>>>(device_->build(entry.spec));
  } catch (const std::exception& error) {
    result = std::make_shared<Result<std::shared_ptr<Kernel>>>(Failure{error.what()});
  }
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  lock.lock();
  entry.result = std::move(result);
  entry.ms = elapsed.count();
  entry.state = Entry::State::done;
  entry.last_use = ++uses_;
  ++loaded_;
  std::vector<Built> unused = take_unused();
  changed_.notify_all();
  // Unloading may wait for the GPU, which is no reason for others to wait for the lock.
  lock.unlock();
  unused.clear();
  lock.lock();
}

void BuildCache::build_in_background() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    Entry* entry = queue_.front();
    queue_.pop_front();
    if (entry->state == Entry::State::queued) build_entry(*entry, lock);
  }
}

}  // namespace gemm
