// Workspace and tickets for products that split k or are served by cuBLAS: a set for each stream, allocated on first need,
// and sets that belong to captured graphs (capture_memory.h).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/device.h"
#include "kernels/launch.h"
#include "kernels/result.h"

namespace gemm {

// What the launches of one stream share. Work on a stream runs in order, so one set is enough for it.
//
// A product may be several launches (a reduction by a kernel of its own, cuBLAS), and nothing that uses the set may come
// between them on the stream. So where several threads use the stream, they hold `launching` around the launches of a
// product; a stream that only one thread has used so far needs no lock. Where several streams use the set, each waits for
// `last_use` first and sets it afterwards. Both say so for the set's life, or until its stream is released.
struct StreamSet {
  Buffer memory;  // tickets, and the workspace unless it is the caller's
  float* workspace = nullptr;
  int64_t workspace_bytes = 0;
  unsigned* tickets = nullptr;
  bool several_threads = false;
  std::mutex launching;
  std::shared_ptr<Marker> last_use;
};

// Around the launches of one product on `stream`; `set` may be null where it needs none.
class SetUse {
 public:
  SetUse(Device& device, StreamSet* set, Stream stream);
  // To be called behind the last launch.
  void done();

 private:
  Device& device_;
  StreamSet* set_;
  Stream stream_;
  std::unique_lock<std::mutex> alone_;
};

// get() is thread-safe. The others change sets that calls may be using: they need all calls to be over.
class StreamMemory {
 public:
  // Streams with a set of their own. Those beyond share one, since a stream that lives on cannot be told from one that is
  // gone, and waiting for the GPU to find out would break captures.
  static constexpr size_t kMaxStreams = 16;

  explicit StreamMemory(Device& device) : device_(device) {}

  int64_t workspace_bytes() const { return bytes_; }
  bool is_callers() const { return callers_workspace_ != nullptr; }
  // The caller's memory for all streams, or our own of that size for each where `workspace` is null. Waits for the device.
  void set_workspace(void* workspace, int64_t bytes);
  // No workspace from now on, where there was no memory for it. Does not wait: the sets that there are stay.
  void give_up() { bytes_ = 0; }

  struct Answer {
    StreamSet* set = nullptr;   // stays until set_workspace
    bool must_be_told = false;  // the stream has been another thread's alone: tell_several_threads first
  };
  // The stream's set, allocated now if it is new, for the thread that `user` stands for.
  Result<Answer> get(Stream stream, const void* user);
  void tell_several_threads(Stream stream);
  // The stream is no more: its set serves the next new one.
  void release(Stream stream);

 private:
  struct Entry {
    Stream stream;
    uint64_t thread;  // number of the thread of a per-thread default stream, which is another stream in each; else 0
    const void* first_user;
    std::shared_ptr<StreamSet> set;
  };
  Entry* find(Stream stream);
  Result<Answer> of_all_streams(std::shared_ptr<StreamSet>& set, bool ordered);

  Device& device_;
  int64_t bytes_ = kWorkspaceBytes;
  float* callers_workspace_ = nullptr;
  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::vector<std::shared_ptr<StreamSet>> free_;
  std::shared_ptr<StreamSet> shared_;                // of the caller's workspace, or of the streams beyond kMaxStreams
  std::vector<std::shared_ptr<StreamSet>> retired_;  // of the workspaces that the caller gave before
};

}  // namespace gemm
