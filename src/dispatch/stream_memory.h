// Workspace and tickets for products that split k, one set for each stream, allocated on first need.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/device.h"
#include "kernels/result.h"

namespace gemm {

// What the launches of one stream share. Work on a stream runs in order, so one set is enough for it as long as nothing
// comes between the tile kernel of a product and its reduction: hold `launching` around them.
struct StreamSet {
  Stream stream = nullptr;
  std::thread::id thread;  // of a per-thread default stream, which is another stream in each thread
  Buffer workspace_buffer;
  float* workspace = nullptr;
  Buffer tickets;
  std::mutex launching;
};

// Thread-safe, except that set_workspace needs all other calls to be over.
class StreamMemory {
 public:
  static constexpr int64_t kDefaultWorkspaceBytes = int64_t{64} << 20;
  static constexpr size_t kMaxStreams = 16;

  explicit StreamMemory(Device& device) : device_(device) {}

  int64_t workspace_bytes() const { return bytes_; }
  // The caller's memory for all streams, or our own of that size for each where `workspace` is null.
  void set_workspace(void* workspace, int64_t bytes);

  // The stream's set, allocated now if it is new. The longest unused of more than kMaxStreams is freed, after everything on
  // the device is done.
  Result<std::shared_ptr<StreamSet>> get(Stream stream);

 private:
  Result<std::shared_ptr<StreamSet>> make(Stream stream, std::thread::id thread);

  Device& device_;
  int64_t bytes_ = kDefaultWorkspaceBytes;
  float* user_workspace_ = nullptr;
  std::mutex mutex_;
  std::vector<std::shared_ptr<StreamSet>> sets_;  // most recently used first
};

}  // namespace gemm
