// The rules of the batch family's parameters, and how its warps use shared memory.
//
//   BM x BN        the largest C that a warp computes, whole: WM = BM and WN = BN
//   BK             depth of a chunk of k       stages    chunks in flight; with k <= BK only the first is used
//   TM, TN, WNITER as in the tile family: how the 32 lanes share the matrix
//   slices         warps, and so matrices, of a block; they do not share k
//   load           async: an operand that is contiguous along k stays so in shared memory
//   order          rows, acc_init plain: the loops are too short for the others to matter, and one kernel has one name
#pragma once

#include "kernels/kernel_types.h"
#include "kernels/tile_config.h"

namespace gemm {

constexpr int matrices_per_block(const KernelConfig& c) { return c.slices; }

// Length of a column of C on its way through shared memory. The pad of 4 floats keeps 16-byte alignment; without it lanes
// that write to different columns would meet in one bank.
constexpr int batch_column_floats(const KernelConfig& c) { return c.BM + 4; }

// Private to a warp: the ring, and later C in the same place.
constexpr int batch_warp_floats(const KernelVariant& v) {
  const int ring = ring_floats(v), result = v.config.BN * batch_column_floats(v.config);
  return ring > result ? ring : result;
}
constexpr int batch_shared_bytes(const KernelVariant& v) { return 4 * v.config.slices * batch_warp_floats(v); }

// Accumulators, a fragment of four steps of k, and addresses.
constexpr int estimated_batch_registers(const KernelConfig& c) {
  return c.accumulators() + 4 * (c.thread_rows() + c.thread_columns()) + 20;
}

// Why the matrix and the lanes do not fit together, or nullptr.
constexpr const char* why_batch_shape_invalid(const KernelConfig& c) {
  if (c.BM <= 0 || c.BN <= 0 || c.BK <= 0 || c.WM <= 0 || c.WN <= 0 || c.WNITER <= 0 || c.TM <= 0 || c.TN <= 0 ||
      c.stages <= 0 || c.slices <= 0 || c.min_blocks <= 0)
    return "every parameter must be positive";
  if (c.BM > 64 || c.BN > 64 || c.BK > 128 || c.WNITER > 16 || c.stages > 8 || c.slices > 32 || c.min_blocks > 32)
    return "a parameter is beyond what one warp for each matrix is good for";
  if (c.WM != c.BM || c.WN != c.BN) return "a warp of the batch family computes a whole matrix: WM = BM and WN = BN";
  if ((c.TM != 1 && c.TM != 2 && c.TM != 4 && c.TM != 8) || (c.TN != 1 && c.TN != 2 && c.TN != 4 && c.TN != 8))
    return "TM and TN must be 1, 2, 4 or 8";
  if (c.WM * c.WN % (32 * c.TM * c.TN * c.WNITER) != 0) return "the matrix is not 32 thread tiles times WNITER";
  if (c.WM % (c.WMITER() * c.TM) != 0 || c.WN % (c.WNITER * c.TN) != 0 || c.lanes_m() * c.lanes_n() != 32)
    return "the sub-tiles do not divide the matrix";
  if (c.BM % 4 != 0 || c.BN % 4 != 0) return "BM and BN must be multiples of 4 (16-byte shared-memory accesses)";
  if (c.BK % 8 != 0) return "BK must be a multiple of 8 (the pad against bank conflicts)";
  if (c.accumulators() > 64) return "more than 64 accumulators per thread";
  return nullptr;
}

constexpr const char* why_batch_invalid(const KernelConfig& c, const DeviceLimits& limits) {
  if (const char* why = why_batch_shape_invalid(c)) return why;
  if (c.load != LoadPath::async) return "the batch family has load async only";
  if (limits.compute_capability < 80) return "cp.async needs sm_80 or newer";
  if (c.order != FmaOrder::rows || c.acc_init != AccInit::plain)
    return "the batch family has order rows and acc_init plain only";
  int worst = 0;
  for (int ops = 0; ops < 4; ++ops) {
    const int bytes = batch_shared_bytes({c, ops & 1 ? Op::T : Op::N, ops & 2 ? Op::T : Op::N});
    worst = bytes > worst ? bytes : worst;
  }
  if (worst > limits.shared_bytes_per_block) return "needs more shared memory than a block may have";
  // 1 KB of every block's shared memory is the system's.
  if (c.min_blocks > 1 && c.min_blocks * (worst + 1024) > limits.shared_bytes_per_sm)
    return "min_blocks blocks do not fit the shared memory of an SM";
  if (c.min_blocks * c.threads() > limits.threads_per_sm) return "min_blocks blocks have more threads than an SM holds";
  const int launch_cap = limits.registers_per_sm / (c.threads() * c.min_blocks) / 8 * 8;
  const int cap = launch_cap < 255 ? launch_cap : 255;
  if (estimated_batch_registers(c) > cap) return "would spill registers";
  return nullptr;
}

}  // namespace gemm
