// GPU memory that is lent in pieces, each to one graph: workspace, and tickets, which are zero whenever nobody holds them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "dispatch/stream_memory.h"
#include "kernels/device.h"
#include "kernels/result.h"

namespace gemm {

// Places in a range of bytes, each where the first gap is that is large enough.
class FirstFit {
 public:
  // As aligned as cuBLAS wants its workspace.
  static constexpr int64_t kAlignment = 256;

  // Where `bytes` lie from now on, within the range's first `end` bytes.
  std::optional<int64_t> take(int64_t bytes, int64_t end);
  void give_back(int64_t begin) { taken_.erase(begin); }
  bool empty() const { return taken_.empty(); }

 private:
  std::map<int64_t, int64_t> taken_;  // begin and end
};

class LentMemory {
 public:
  // Allocates, and zeroes the tickets without touching any stream of the caller. Failure: there is not so much memory.
  static Result<LentMemory> make(Device& device, int64_t workspace_bytes);

  struct Piece {
    std::shared_ptr<StreamSet> set;
    int64_t tickets = 0;  // that the set has
    int64_t workspace_at = 0, tickets_at = 0;
  };
  // Nothing where no gap within the first `end` bytes of the workspace is large enough.
  std::optional<Piece> lend(int64_t bytes, int64_t tickets, int64_t end);
  // What was lent, when the GPU is done with it: kernels leave tickets as they found them.
  void take_back(const Piece& piece);

  int64_t workspace_bytes() const { return workspace_bytes_; }
  bool is_unused() const { return workspace_.empty(); }

 private:
  LentMemory(Buffer memory, int64_t workspace_bytes, int64_t ticket_bytes)
      : memory_(std::move(memory)), workspace_bytes_(workspace_bytes), ticket_bytes_(ticket_bytes) {}

  Buffer memory_;  // tickets, then workspace
  int64_t workspace_bytes_, ticket_bytes_;
  FirstFit workspace_, tickets_;
};

}  // namespace gemm
