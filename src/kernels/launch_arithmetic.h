// Numbers that both the judgement of a choice (launch.cpp) and its launch (launch_plan.cpp) need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/launch.h"

namespace gemm {

inline constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
inline constexpr int64_t kMaxItems = kMaxInt - (1 << 20);  // of persistent blocks, which count on past the last one
inline constexpr int64_t kMaxGridYZ = 65535;               // CUDA's limit for blocks along y and z

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline int64_t tiles_of(const KernelConfig& config, const Problem& p) {
  return ceil_div(p.m, config.BM) * ceil_div(p.n, config.BN);
}

// Stream-k shares k by itself.
inline int split_of(const Choice& choice) { return choice.reduction == Reduction::stream_k ? 1 : choice.split_k; }

inline bool is_persistent(const KernelConfig& config) { return is_specialized(config.load); }

// Matrices in one launch: the grid's z extent, 32-bit item numbers and, with tickets, the length of the ticket buffer limit
// it.
int64_t batch_per_launch(const Choice& choice, const Problem& p);

// That one block of a stream-k tile gets at least; a partial tile costs about as much as four stages.
inline constexpr int64_t kLeastSharedStages = 4;

// The persistent blocks of one launch: `items` tiles, or parts of them where k is split, of so many stages.
inline PersistentGrid share_items(const KernelConfig& config, Reduction reduction, int64_t items, int64_t stages,
                                  int sm_count) {
  const int64_t most = static_cast<int64_t>(sm_count) * config.min_blocks;
  PersistentGrid grid;
  grid.blocks = static_cast<int>(std::min(most, items));
  grid.whole_items = static_cast<int>(items);
  if (reduction != Reduction::stream_k || items % most == 0) return grid;
  // The last full wave is shared as well: then no block gets less than a whole tile's work, and most tiles stay whole.
  grid.whole_items = static_cast<int>(std::max<int64_t>(0, items / most - 1) * most);
  grid.shared_tiles = static_cast<int>(items) - grid.whole_items;
  const int64_t shared_stages = grid.shared_tiles * stages;
  grid.blocks =
      static_cast<int>(grid.whole_items > 0 ? most : std::clamp<int64_t>(shared_stages / kLeastSharedStages, 1, most));
  return grid;
}

}  // namespace gemm
