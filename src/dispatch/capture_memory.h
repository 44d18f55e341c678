// Workspace for products that are captured into CUDA graphs. A graph may be replayed on any stream at any time, so what its
// nodes use is theirs alone: a set is given to the graph under capture, and comes back when the graph, its copies and its
// executables are destroyed. So captures that are thrown away, one after the other, all use the same memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "dispatch/stream_memory.h"
#include "kernels/device.h"
#include "kernels/result.h"

namespace gemm {

class CaptureMemory {
 public:
  // Sets that graphs hold take at most so many times the workspace size of one stream.
  static constexpr int64_t kMostStreams = 16;

  explicit CaptureMemory(Device& device) : device_(device) {}

  // A set of at least `bytes` for the capture with this number on `stream`. Products of one capture on one stream depend on
  // each other, so they share a set. Allocates and zeroes without touching the captured stream. `limit` is what all sets may
  // take together. Failure: there is no more memory to be had. Thread-safe.
  Result<StreamSet*> get(Stream stream, uint64_t capture, int64_t bytes, int64_t limit);

 private:
  struct Entry {
    std::shared_ptr<StreamSet> set;
    Stream stream;
    uint64_t capture;
    std::shared_ptr<std::atomic<bool>> in_use;  // by a graph
  };
  Entry* find_unused(int64_t bytes);
  void drop_unused();
  int64_t total() const;

  Device& device_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace gemm
