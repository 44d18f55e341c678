// The rules of the stream family's parameters.
//
// One operand is long (many rows of C, or many columns), the other one short: 1 to 16 rows or columns, which every thread
// has all of. The fields of KernelConfig mean:
//
//   order    rows: the rows of C are many, A is the long operand; columns: the columns are, B is
//   BM, BN   tile of C of a block; its short side is the number of vectors
//   WM, WN   tile of C of a warp; the short side is that of the block
//   TM, TN   results that a lane sums up over its own k; the short side is that of the block, the long side 4 or 8.
//            The lanes that are left, 32 * TM * TN / (WM * WN), lie side by side along k
//   slices   groups of warps that share k
//   stages   steps of the long operand that are on their way to a thread's registers, each TM or TN loads of 16 bytes.
//            A step is slices * lanes along k * 4 deep
//   BK       chunk of k of the short operand that shared memory holds, twice: the next one arrives while this one is used.
//            A multiple of stages steps
//
// WNITER, load and acc_init have one value, so that equal kernels have equal names.
#pragma once

#include "kernels/kernel_types.h"

namespace gemm {

// A configuration seen from the long operand: its rows are rows of A or columns of op(B).
struct StreamShape {
  bool long_a;
  int block_rows, warp_rows, lane_rows;
  int block_columns, warp_columns, columns;  // the short side: all three are the same in a valid configuration
  int slices;

  constexpr int lanes_rows() const { return warp_rows / lane_rows; }
  constexpr int lanes_k() const { return 32 / lanes_rows(); }
  constexpr int step() const { return slices * lanes_k() * 4; }  // k of the block that one step of all its threads covers
  constexpr int results() const { return lane_rows * columns; }  // of a lane
};

constexpr StreamShape stream_shape(const KernelConfig& c) {
  if (c.order == FmaOrder::rows) return {true, c.BM, c.WM, c.TM, c.BN, c.WN, c.TN, c.slices};
  return {false, c.BN, c.WN, c.TN, c.BM, c.WM, c.TM, c.slices};
}

// Shared memory. The chunks of the short operand and what the end of the kernel needs lie in the same place:
//   chunks   2 x [column][kStreamPad + BK], k fast
//   lanes    [thread][kStreamPad + results], where lanes share k; behind it a tile of C for each slice
//   scratch  16 bytes of each thread, for adding up the splits (epilogue.cuh)
// 16 bytes with the ticket flag follow.
//
// Of both pads: 4 floats keep 16-byte alignment. A transposing copy then writes 8 columns of 4 k to 32 different banks, and
// 8 lanes that write 16 bytes of their 8, 16 or 32 results meet different bank groups.
inline constexpr int kStreamPad = 4;
constexpr int stream_chunk_floats(const KernelConfig& c) { return stream_shape(c).columns * (c.BK + kStreamPad); }
constexpr int stream_lane_floats(const KernelConfig& c) {
  return stream_shape(c).lanes_k() == 1 ? 0 : c.threads() * (stream_shape(c).results() + kStreamPad);
}
constexpr int stream_trailer_offset(const KernelConfig& c) {
  const int chunks = 2 * stream_chunk_floats(c), sums = stream_lane_floats(c) + c.slices * c.BM * c.BN,
            scratch = 4 * c.threads();
  const int most = chunks > sums ? chunks : sums;
  return 4 * (most > scratch ? most : scratch);
}
constexpr int stream_shared_bytes(const KernelVariant& v) { return stream_trailer_offset(v.config) + 16; }

// Accumulators, the steps on their way, four k of one column, the 64-bit pointer of every row, and offsets and counters.
constexpr int estimated_stream_registers(const KernelConfig& c) {
  const StreamShape shape = stream_shape(c);
  return shape.results() + 4 * shape.lane_rows * c.stages + 4 + 2 * shape.lane_rows + 20;
}

// Why the tiles of block, warp and lane do not fit together, or nullptr.
constexpr const char* why_stream_shape_invalid(const KernelConfig& c) {
  if (c.BM <= 0 || c.BN <= 0 || c.BK <= 0 || c.WM <= 0 || c.WN <= 0 || c.TM <= 0 || c.TN <= 0 || c.stages <= 0 ||
      c.slices <= 0 || c.min_blocks <= 0)
    return "every parameter must be positive";
  if (c.BM > 1024 || c.BN > 1024 || c.BK > 16384 || c.WM > 256 || c.WN > 256 || c.stages > 16 || c.slices > 32 ||
      c.min_blocks > 32)
    return "a parameter is beyond what any GPU can hold";
  if (c.WNITER != 1 || c.load != LoadPath::register_staged || c.acc_init != AccInit::plain)
    return "stream needs WNITER 1, load register_staged and acc_init plain";
  const StreamShape s = stream_shape(c);
  if (s.columns != s.warp_columns || s.columns != s.block_columns)
    return "a thread must have the whole short side of the block";
  if (s.columns != 1 && s.columns != 2 && s.columns != 4 && s.columns != 8 && s.columns != 16)
    return "the short side must be 1, 2, 4, 8 or 16";
  // Tiles are moved in quads of four rows of C (epilogue.cuh, reduce.cuh).
  if (c.BM % 4 != 0) return "BM must be a multiple of 4";
  if (s.lane_rows != 4 && s.lane_rows != 8) return "a thread must have 4 or 8 of the long side";
  if (s.warp_rows % s.lane_rows != 0 || s.lanes_rows() > 32 || 32 % s.lanes_rows() != 0)
    return "the warp tile is not 1, 2, 4, 8, 16 or 32 thread tiles";
  if (s.block_rows % s.warp_rows != 0) return "the block tile is not a multiple of the warp tile";
  if (c.BK % (s.step() * c.stages) != 0) return "BK is not a multiple of stages * slices * lanes along k * 4";
  if (c.threads() > 1024) return "more than 1024 threads per block";
  return nullptr;
}

// The reason why `c` cannot run on a GPU with these limits, or nullptr.
constexpr const char* why_stream_invalid(const KernelConfig& c, const DeviceLimits& limits) {
  if (const char* why = why_stream_shape_invalid(c)) return why;
  if (limits.compute_capability < 80) return "cp.async needs sm_80 or newer";
  const int shared_bytes = stream_trailer_offset(c) + 16;
  if (shared_bytes > limits.shared_bytes_per_block) return "more shared memory than a block can have";
  // The runtime keeps 1 KB of shared memory per resident block.
  if (c.min_blocks * (shared_bytes + 1024) > limits.shared_bytes_per_sm)
    return "min_blocks blocks do not fit the SM's shared memory";
  if (c.min_blocks * c.threads() > limits.threads_per_sm) return "min_blocks blocks have too many threads for an SM";
  const int launch_cap = limits.registers_per_sm / (c.min_blocks * c.threads());
  if (estimated_stream_registers(c) > (launch_cap < 255 ? launch_cap : 255)) return "would spill registers";
  return nullptr;
}

}  // namespace gemm
