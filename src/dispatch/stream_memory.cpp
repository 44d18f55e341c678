#include "dispatch/stream_memory.h"

#include <algorithm>

#include "kernels/launch.h"

namespace gemm {
namespace {

// cudaStreamPerThread: one handle for as many streams as there are threads.
const Stream kPerThreadStream = reinterpret_cast<Stream>(0x2);

}  // namespace

void StreamMemory::set_workspace(void* workspace, int64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  device_.synchronize(nullptr);
  sets_.clear();
  user_workspace_ = static_cast<float*>(workspace);
  bytes_ = bytes;
}

Result<std::shared_ptr<StreamSet>> StreamMemory::get(Stream stream) {
  const std::thread::id thread = stream == kPerThreadStream ? std::this_thread::get_id() : std::thread::id{};
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(sets_.begin(), sets_.end(),
                                  [&](const auto& set) { return set->stream == stream && set->thread == thread; });
  if (found != sets_.end()) {
    std::rotate(sets_.begin(), found, found + 1);
    return sets_.front();
  }
  if (sets_.size() >= kMaxStreams) {
    device_.synchronize(nullptr);
    sets_.pop_back();
  }
  Result<std::shared_ptr<StreamSet>> made = make(stream, thread);
  if (made) sets_.insert(sets_.begin(), *made);
  return made;
}

Result<std::shared_ptr<StreamSet>> StreamMemory::make(Stream stream, std::thread::id thread) {
  auto set = std::make_shared<StreamSet>();
  set->stream = stream;
  set->thread = thread;
  set->workspace = user_workspace_;
  if (!user_workspace_) {
    const Result<Buffer> workspace = device_.allocate(static_cast<size_t>(bytes_));
    if (!workspace) return Failure{workspace.error()};
    set->workspace_buffer = *workspace;
    set->workspace = set->workspace_buffer.as<float>();
  }
  const Result<Buffer> tickets = device_.allocate(kMaxTickets * sizeof(unsigned));
  if (!tickets) return Failure{tickets.error()};
  set->tickets = *tickets;
  device_.set_words(set->tickets.as<>(), 0, kMaxTickets, stream);
  return set;
}

}  // namespace gemm
