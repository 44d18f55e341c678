// Workspace for products that are captured into CUDA graphs. A graph may be replayed on any stream at any time, so what its
// nodes use is theirs alone: a piece of memory is lent to the graph under capture, and comes back when the graph, its copies
// and its executables are destroyed and have run for the last time.
//
// The first piece brings as much memory as a stream has, which is enough for many graphs. Programs that keep more graphs
// than that get more. Programs that destroy them while they run do not: their pieces come back late, when the driver gets to
// it, and memory that grew meanwhile would stay. So it grows only while more graphs have memory, or have just been refused
// some, than have given it back so far.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dispatch/lent_memory.h"
#include "dispatch/stream_memory.h"
#include "kernels/device.h"
#include "kernels/result.h"

namespace gemm {

// What a captured product needs.
struct CaptureNeed {
  int64_t bytes = 0;        // of workspace
  int64_t least_bytes = 0;  // that do as well where so many are not to be had; the same number: nothing less does
  int64_t tickets = 0;
  bool indispensable = false;  // it cannot be served without
};

class CaptureMemory {
 public:
  // Graphs take at most so many times the workspace of one stream.
  static constexpr int64_t kMostStreams = 16;

  explicit CaptureMemory(Device& device) : device_(device) {}

  // A set for the capture with this number on `stream`. Products of one capture on one stream depend on each other, so they
  // share a set. Allocates and zeroes without touching the captured stream. `stream_bytes` is what a stream has, and no need
  // is larger. Failure: there is no memory to be had. Thread-safe.
  Result<StreamSet*> get(Stream stream, uint64_t capture, const CaptureNeed& need, int64_t stream_bytes);

 private:
  struct Loan {
    LentMemory* from;
    LentMemory::Piece piece;
    Stream stream;
    uint64_t capture;
    std::shared_ptr<std::atomic<bool>> in_use;  // by a graph
  };
  StreamSet* find(Stream stream, uint64_t capture, int64_t bytes, int64_t tickets) const;
  // The new loan, not yet in use; null where there is no room.
  Loan* lend(const CaptureNeed& need, int64_t bytes);
  void collect();
  // Takes more memory; why not, or an empty string.
  std::string grow(const CaptureNeed& need, int64_t stream_bytes);
  int64_t total() const;

  Device& device_;
  std::mutex mutex_;
  std::list<LentMemory> memories_;
  std::vector<Loan> loans_;
  size_t returned_ = 0;  // loans, so far
  size_t refused_ = 0;   // captures, since the last loan came back
  uint64_t last_refused_ = 0;
};

}  // namespace gemm
