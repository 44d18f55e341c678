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

}  // namespace gemm
