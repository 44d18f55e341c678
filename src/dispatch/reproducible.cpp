#include "dispatch/reproducible.h"

#include <algorithm>

#include "kernels/launch_arithmetic.h"

namespace gemm {
namespace {

// Both walk through k in steps of 8, the tail first, in one sum for each result, so they give the same bits. Their load path
// is the one that every GPU from sm_75 on has.
constexpr KernelConfig kLarge{
    .BM = 128, .BN = 128, .BK = 8, .WM = 64, .WN = 32, .TM = 8, .TN = 8, .stages = 2, .load = LoadPath::register_staged};
constexpr KernelConfig kMedium{
    .BM = 64, .BN = 64, .BK = 8, .WM = 32, .WN = 32, .TM = 8, .TN = 4, .stages = 2, .load = LoadPath::register_staged};
// Two sums for each result, of alternating eights of k, for each part of the split.
constexpr KernelConfig kSmall{.BM = 32,
                              .BN = 32,
                              .BK = 16,
                              .WM = 32,
                              .WN = 16,
                              .WNITER = 2,
                              .TM = 8,
                              .TN = 1,
                              .stages = 2,
                              .slices = 2,
                              .load = LoadPath::register_staged,
                              .order = FmaOrder::columns};

// C of at most so many small tiles is a small product.
constexpr int64_t kSmallTiles = 64;
// Of a single small product each part of k has at least so much, and there are at most eight: the partial tiles then take
// 64 * 8 * 4 KiB = 2 MiB at most.
constexpr int64_t kDepthOfPart = 512;
constexpr int64_t kMostParts = 8;
// From so many tiles on the large one keeps a GPU busy.
constexpr int64_t kManyTiles = 64;

}  // namespace

std::vector<Choice> reproducible_choices(const Problem& p) {
  if (std::max({p.m, p.n, p.k}) > kMaxInt) return {};  // no kernel counts so far
  if (tiles_of(kSmall, p) <= kSmallTiles) {
    const int64_t parts = p.batch == 1 ? std::clamp<int64_t>(p.k / kDepthOfPart, 1, kMostParts) : 1;
    return {{kSmall, static_cast<int>(parts), Reduction::ticket}};
  }
  std::vector<Choice> choices{{kLarge, 1, Reduction::ticket}, {kMedium, 1, Reduction::ticket}};
  if (tiles_of(kLarge, p) * std::min(p.batch, kManyTiles) < kManyTiles) std::swap(choices[0], choices[1]);
  return choices;
}

std::vector<KernelConfig> reproducible_configs() { return {kLarge, kMedium, kSmall}; }

}  // namespace gemm
