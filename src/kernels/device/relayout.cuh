// Copies of operands in the layout that the tile kernels read best: rows contiguous and lines aligned to 128 bytes, whatever
// the original's layout and alignment. One launch copies A, B or both.
//
//   along k                      in shared memory            copy
//   row 0: k0 k1 k2 ... k63      [64 k][65]: the pad of      k0: row 0 row 1 ... row 63
//   row 1: k0 k1 k2 ...          one float makes writes      k1: row 0 row 1 ...
//   ...                          along k and reads along     ...
//   64 x 64 floats a block       rows free of conflicts
//
// An operand whose rows are contiguous takes the same way without turning. All accesses to global memory are single floats,
// 32 neighbouring ones in a warp, so any alignment goes. 16 loads of a thread are under way at once: 16 KB a block, four
// blocks a multiprocessor (56 registers).
#pragma once

#include "kernels/device/platform.cuh"

namespace gemm {

inline constexpr int kRelayoutLd = kRelayoutTile + 1;
inline constexpr int kRelayoutLines = kRelayoutThreads / kRelayoutTile;  // that the block reads or writes at a time
inline constexpr int kRelayoutPasses = kRelayoutTile / kRelayoutLines;

GEMM_DEVICE void relayout_tile(const RelayoutOperand& operand, int tile, int matrix, float* shared) {
  const int tiles_rows = (operand.rows + kRelayoutTile - 1) / kRelayoutTile;
  const int first_row = tile % tiles_rows * kRelayoutTile, first_k = tile / tiles_rows * kRelayoutTile;
  const int rows = operand.rows - first_row, depth = operand.k - first_k;  // that are left
  const int fast = static_cast<int>(threadIdx.x) % kRelayoutTile, line = static_cast<int>(threadIdx.x) / kRelayoutTile;
  const bool along_k = operand.along_k != 0;
  const float* from = operand.from + matrix * operand.stride +
                      (along_k ? first_row * operand.ld + first_k : first_k * operand.ld + first_row);
  const int length = along_k ? depth : rows, lines = along_k ? rows : depth;

  float value[kRelayoutPasses];
  GEMM_UNROLL
  for (int i = 0; i < kRelayoutPasses; ++i) {
    const int at = line + i * kRelayoutLines;
    value[i] = fast < length && at < lines ? from[at * operand.ld + fast] : 0.0f;
  }
  GEMM_UNROLL
  for (int i = 0; i < kRelayoutPasses; ++i) {
    const int at = line + i * kRelayoutLines;
    shared[along_k ? fast * kRelayoutLd + at : at * kRelayoutLd + fast] = value[i];
  }
  block_barrier();
  float* to = operand.to + matrix * operand.to_stride + first_k * operand.to_ld + first_row;
  GEMM_UNROLL
  for (int i = 0; i < kRelayoutPasses; ++i) {
    const int k = line + i * kRelayoutLines;
    if (k < depth && fast < rows) to[k * operand.to_ld + fast] = shared[k * kRelayoutLd + fast];
  }
}

GEMM_DEVICE void relayout(const RelayoutArgs& args) {
  const int tile = static_cast<int>(blockIdx.x), matrix = static_cast<int>(blockIdx.y);
  const bool is_a = tile < args.a.tiles;
  const RelayoutOperand& operand = is_a ? args.a : args.b;
  // A matrix that the whole batch shares is copied once.
  if (matrix < operand.matrices) relayout_tile(operand, is_a ? tile : tile - args.a.tiles, matrix, dynamic_shared());
}

}  // namespace gemm
