#include "dispatch/capture_memory.h"

#include <algorithm>

namespace gemm {
namespace {

// Sizes are rounded up to this, so that captures of much the same products find sets that fit.
constexpr int64_t kGranularity = int64_t{2} << 20;

// What a graph holds. Its end may come in a thread of the driver, where nothing may be freed; a flag may be cleared.
struct Loan {
  explicit Loan(std::shared_ptr<std::atomic<bool>> flag) : in_use(std::move(flag)) {}
  ~Loan() { in_use->store(false, std::memory_order_release); }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  std::shared_ptr<std::atomic<bool>> in_use;
};

bool is_used(const std::shared_ptr<std::atomic<bool>>& flag) { return flag->load(std::memory_order_acquire); }

}  // namespace

Result<StreamSet*> CaptureMemory::get(Stream stream, uint64_t capture, int64_t bytes, int64_t limit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Entry& entry : entries_)
    if (entry.capture == capture && entry.stream == stream && is_used(entry.in_use) && entry.set->workspace_bytes >= bytes)
      return entry.set.get();
  Entry* entry = find_unused(bytes);
  if (!entry) {
    // Small limits are kept to the byte.
    const int64_t rounded =
        std::max(bytes, std::min((bytes + kGranularity - 1) / kGranularity * kGranularity, limit - total()));
    if (total() + rounded > limit) drop_unused();
    if (total() + rounded > limit)
      return Failure{"captured graphs hold " + std::to_string(total()) + " bytes of workspace already"};
    Result<std::shared_ptr<StreamSet>> made = make_stream_set(device_, rounded);
    if (!made) return Failure{made.error()};
    // Threads may capture into one stream together.
    (*made)->several_threads = true;
    entries_.push_back({*made, nullptr, 0, std::make_shared<std::atomic<bool>>(false)});
    entry = &entries_.back();
  }
  entry->in_use->store(true, std::memory_order_release);
  // From here on the flag is cleared when the loan ends, also where no graph takes it.
  const Result<bool> kept = device_.keep_with_capture(stream, std::make_shared<Loan>(entry->in_use));
  if (!kept) return Failure{kept.error()};
  entry->stream = stream;
  entry->capture = capture;
  return entry->set.get();
}

// The smallest that is large enough.
CaptureMemory::Entry* CaptureMemory::find_unused(int64_t bytes) {
  Entry* best = nullptr;
  for (Entry& entry : entries_)
    if (!is_used(entry.in_use) && entry.set->workspace_bytes >= bytes &&
        (!best || entry.set->workspace_bytes < best->set->workspace_bytes))
      best = &entry;
  return best;
}

void CaptureMemory::drop_unused() {
  std::erase_if(entries_, [](const Entry& entry) { return !is_used(entry.in_use); });
}

int64_t CaptureMemory::total() const {
  int64_t sum = 0;
  for (const Entry& entry : entries_) sum += entry.set->workspace_bytes;
  return sum;
}

}  // namespace gemm
