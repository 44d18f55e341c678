#include "dispatch/stream_memory.h"

#include <algorithm>
#include <atomic>

#include "kernels/launch.h"

namespace gemm {
namespace {

// cudaStreamPerThread: one handle for as many streams as there are threads.
const Stream kPerThreadStream = reinterpret_cast<Stream>(0x2);

// A thread's number, never used again: the system gives an ended thread's id to a new one, while work of the old one may
// still run.
uint64_t this_thread() {
  static std::atomic<uint64_t> last{0};
  thread_local const uint64_t number = ++last;
  return number;
}

uint64_t thread_of(Stream stream) { return stream == kPerThreadStream ? this_thread() : 0; }

// A set with that much workspace, or with the caller's. Its tickets are zeroed when this returns, without touching any
// stream of the caller.
Result<std::shared_ptr<StreamSet>> make_stream_set(Device& device, int64_t bytes, float* callers_workspace = nullptr) {
  constexpr size_t kTicketBytes = kMaxTickets * sizeof(unsigned);
  const Result<Buffer> memory = device.allocate(kTicketBytes + (callers_workspace ? 0 : static_cast<size_t>(bytes)));
  if (!memory) return Failure{memory.error()};
  auto set = std::make_shared<StreamSet>();
  set->memory = *memory;
  set->tickets = memory->as<unsigned>();
  set->workspace = callers_workspace ? callers_workspace : reinterpret_cast<float*>(memory->as<char>() + kTicketBytes);
  set->workspace_bytes = bytes;
  device.set_words_now(set->tickets, 0, kMaxTickets);
  return set;
}

}  // namespace

SetUse::SetUse(Device& device, StreamSet* set, Stream stream) : device_(device), set_(set), stream_(stream) {
  if (!set) return;
  if (set->several_threads) alone_ = std::unique_lock<std::mutex>(set->launching);
  if (set->last_use) device.wait_for(*set->last_use, stream);
}

void SetUse::done() {
  if (set_ && set_->last_use) device_.mark(*set_->last_use, stream_);
}

void StreamMemory::set_workspace(void* workspace, int64_t bytes) {
  device_.synchronize(nullptr);
  entries_.clear();
  free_.clear();
  // Graphs captured with the caller's workspace still use these tickets.
  if (shared_ && callers_workspace_) retired_.push_back(std::move(shared_));
  shared_ = nullptr;
  callers_workspace_ = static_cast<float*>(workspace);
  bytes_ = bytes;
}

StreamMemory::Entry* StreamMemory::find(Stream stream) {
  const uint64_t thread = thread_of(stream);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.stream == stream && entry.thread == thread; });
  return found == entries_.end() ? nullptr : &*found;
}

Result<StreamMemory::Answer> StreamMemory::get(Stream stream, const void* user) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (callers_workspace_) return of_all_streams(shared_, false);
  if (const Entry* entry = find(stream))
    return Answer{entry->set.get(), entry->first_user != user && !entry->set->several_threads};
  if (free_.empty() && entries_.size() >= kMaxStreams) return of_all_streams(shared_, true);
  std::shared_ptr<StreamSet> set;
  if (free_.empty()) {
    Result<std::shared_ptr<StreamSet>> made = make_stream_set(device_, bytes_);
    if (!made) return Failure{made.error()};
    set = *made;
  } else {
    set = std::move(free_.back());
    free_.pop_back();
  }
  entries_.push_back({stream, thread_of(stream), user, set});
  return Answer{set.get(), false};
}

Result<StreamMemory::Answer> StreamMemory::of_all_streams(std::shared_ptr<StreamSet>& set, bool ordered) {
  if (!set) {
    Result<std::shared_ptr<StreamSet>> made = make_stream_set(device_, bytes_, callers_workspace_);
    if (!made) return Failure{made.error()};
    set = *made;
    set->several_threads = true;
    if (ordered) set->last_use = device_.make_marker();
  }
  return Answer{set.get(), false};
}

void StreamMemory::tell_several_threads(Stream stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Entry* entry = find(stream)) entry->set->several_threads = true;
}

void StreamMemory::release(Stream stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Entry* entry = find(stream);
  if (!entry) return;
  entry->set->several_threads = false;
  free_.push_back(std::move(entry->set));
  entries_.erase(entries_.begin() + (entry - entries_.data()));
}

}  // namespace gemm
