// The rules of the tile family's parameters, and how its variants use shared memory.
#pragma once

#include "kernels/kernel_types.h"

namespace gemm {

constexpr int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

// Where one operand's stage lies in shared memory.
struct OperandLayout {
  int rows;           // BM or BN
  bool k_contiguous;  // in global memory
  bool k_fast;        // in shared memory: [rows][ld] with k fast, else [BK][ld] with rows fast
  int ld;             // padded length of the fast index
  int floats;         // of one stage

  friend constexpr bool operator==(const OperandLayout&, const OperandLayout&) = default;
};

// Where the tensor copy engine leaves k fast, a stage is [BK/span][rows][span], and 16-byte pieces are swizzled within 8
// rows (tma_tile.cuh).
constexpr int swizzle_span(const KernelConfig& c) { return c.BK < 32 ? c.BK : 32; }

// Whether an operand that is contiguous along k stays so for the tensor copy engine, which needs 16-byte alignment.
constexpr bool stays_along_k(const KernelConfig& c, int vec) {
  return c.load == LoadPath::tma || (c.load == LoadPath::warp_specialized_k && vec == 4);
}

// `vec`: floats of the operand that alignment allows to load at once.
constexpr OperandLayout operand_layout(const KernelConfig& c, int rows, bool k_contiguous, int vec) {
  if (c.load == LoadPath::tma || (k_contiguous && stays_along_k(c, vec))) {
    // The swizzle pattern repeats every 1,024 bytes.
    return {rows, k_contiguous, k_contiguous, k_contiguous ? swizzle_span(c) : rows, round_up(rows * c.BK, 256)};
  }
  const bool k_fast = k_contiguous && c.load == LoadPath::async;
  // Pads of 4 floats keep 16-byte alignment. With k fast, 8 lanes that read 16 bytes of 8 neighbouring rows meet 8 different
  // bank groups; after a transpose, the 4-byte stores of one warp (8 k of 4 rows, BK = 8) meet 32 different banks.
  const int ld = k_fast ? c.BK + 4 : k_contiguous ? rows + 4 : rows;
  const int floats = (k_fast ? rows : c.BK) * ld;
  if (!is_specialized(c.load)) return {rows, k_contiguous, k_fast, ld, floats};
  // The tensor copy engine writes to multiples of 128 bytes, and swizzled to multiples of 1,024.
  return {rows, k_contiguous, false, ld, round_up(floats, c.load == LoadPath::warp_specialized_k ? 256 : 32)};
}

constexpr OperandLayout layout_a(const KernelVariant& v) {
  return operand_layout(v.config, v.config.BM, v.a_along_k(), v.vec_a);
}
constexpr OperandLayout layout_b(const KernelVariant& v) {
  return operand_layout(v.config, v.config.BN, v.b_along_k(), v.vec_b);
}
constexpr int stage_floats(const KernelVariant& v) { return layout_a(v).floats + layout_b(v).floats; }
constexpr int ring_floats(const KernelVariant& v) { return v.config.stages * stage_floats(v); }
constexpr int slice_floats(const KernelConfig& c) { return c.slices > 1 ? c.slices * c.BM * c.BN : 0; }
// Whether each slice adds and stores an equal part of the tile: of each thread's results so many whole quads, of rows that
// lie side by side in C.
constexpr bool slices_share_sum(const KernelVariant& v) {
  return !layout_a(v).k_fast && v.config.TM % 4 == 0 && v.config.accumulators() % (4 * v.config.slices) == 0;
}

// Blocks of a cluster at most: more need a permission that not every GPU with clusters grants.
inline constexpr int kMostPerCluster = 8;
// Persistent blocks compute many tiles, and a cluster has one.
constexpr bool can_cluster(const KernelConfig& c) { return c.family == Family::tile && !is_specialized(c.load); }

// The slices' partial tiles. The blocks of a cluster keep their sum in the first one's place, where there is only one too.
constexpr int partial_floats(const KernelVariant& v) {
  return v.cluster && v.config.slices == 1 ? v.config.BM * v.config.BN : slice_floats(v.config);
}

// Ring and partial tiles, which share their memory except where the next tile's copies are already under way; then 16 bytes
// (zeros for AccInit::shifted, later the ticket flag) and the barriers that only the rings of the tensor copy engine have:
// two a stage, a spare one for the first pass, and the flag of persistent blocks.
constexpr int trailer_offset(const KernelVariant& v) {
  const int ring = ring_floats(v), partial = partial_floats(v);
  if (is_specialized(v.config.load)) return 4 * (ring + partial);
  return 4 * (ring > partial ? ring : partial);
}
constexpr bool has_barrier_ring(LoadPath load) { return load == LoadPath::tma || is_specialized(load); }
constexpr int tile_shared_bytes(const KernelVariant& v) {
  return trailer_offset(v) + 16 + (has_barrier_ring(v.config.load) ? 16 * v.config.stages + 16 : 0);
}

// Shared memory of the op pair that needs most, with aligned operands or with others.
constexpr int worst_tile_shared_bytes(const KernelConfig& c) {
  int worst = 0;
  for (int layout = 0; layout < 8; ++layout) {
    const int vec = layout & 4 ? 1 : 4;
    const int bytes = tile_shared_bytes({c, layout & 1 ? Op::T : Op::N, layout & 2 ? Op::T : Op::N, vec, vec});
    worst = bytes > worst ? bytes : worst;
  }
  return worst;
}

// More results a thread than this leave no registers for two fragments of each operand (device/steps_ahead.cuh).
inline constexpr int kMostWithTwoFragments = 144;
constexpr bool fragments_in_place(const KernelConfig& c) { return c.accumulators() > kMostWithTwoFragments; }

// Registers that the main loop needs at least: accumulators, fragments, copy offsets and addresses. A fragment holds two
// steps of one k; with k fast four, and eight where it is double-buffered as well (tma). Of fragments in place one operand
// has two, and two quads of the other live at a time.
constexpr int estimated_tile_registers(const KernelConfig& c) {
  const int results = c.thread_rows() + c.thread_columns();
  if (fragments_in_place(c))
    return c.accumulators() + 2 * (c.order == FmaOrder::rows ? c.thread_columns() : c.thread_rows()) + 8 + 12;
  if (is_specialized(c.load)) return c.accumulators() + 2 * results + 14;
  if (c.load == LoadPath::tma) return c.accumulators() + 8 * results + swizzle_span(c) / 4 * 2 + 18;
  const int fragment_steps = c.load == LoadPath::async ? 4 : 2;
  const int copies = (c.BM + c.BN) * c.BK / c.threads() / (c.load == LoadPath::async_transpose ? 2 : 4);
  const int staged = c.load == LoadPath::register_staged ? (c.BM + c.BN) * c.BK / c.threads() : 0;
  return c.accumulators() + fragment_steps * results + copies + staged + 18;
}

// LoadPath::warp_specialized: registers of a computing thread, which gets what the copying ones give back: the sum must stay
// within what the block is launched with. setmaxnreg takes multiples of 8; no kernel needed more than 240.
constexpr int compute_registers(const KernelConfig& c, int copying, int registers_per_sm = 65536) {
  int launched = registers_per_sm / (c.threads() * c.min_blocks) / 8 * 8;
  launched = launched < 255 ? launched : 248;
  const int share = (launched * c.threads() - copying * 128) / c.compute_threads() / 8 * 8;
  return share < 240 ? share : 240;
}

// And of a copying thread; single floats of contiguous rows take more than transposing ones. With fewer something spills,
// and then ptxas lays out the computing side badly too; with more the computing side has too few to load its fragments early
// (a version with 48 was 7 % slower at 4096 TN; other things in its copy loop differed too). Where blocks share an SM, what
// the computing side needs goes first; 24 suffice for boxes and transposing copies.
constexpr int copy_registers(const KernelVariant& v) {
  const bool single_rows = (!v.a_along_k() && v.vec_a < 4) || (!v.b_along_k() && v.vec_b < 4);
  int registers = single_rows ? 48 : 40;
  const int least = fragments_in_place(v.config) ? 24 : 32;
  while (registers > least && compute_registers(v.config, registers) < estimated_tile_registers(v.config)) registers -= 8;
  return registers;
}

// Why the block tile, the warps and the threads do not fit together, or nullptr.
constexpr const char* why_tile_shape_invalid(const KernelConfig& c) {
  if (c.BM <= 0 || c.BN <= 0 || c.BK <= 0 || c.WM <= 0 || c.WN <= 0 || c.WNITER <= 0 || c.TM <= 0 || c.TN <= 0 ||
      c.stages <= 0 || c.slices <= 0 || c.min_blocks <= 0)
    return "every parameter must be positive";
  if (c.BM > 512 || c.BN > 512 || c.BK > 128 || c.WM > 512 || c.WN > 512 || c.WNITER > 16 || c.stages > 8 || c.slices > 32 ||
      c.min_blocks > 32)
    return "a parameter is beyond what any GPU can hold";
  if ((c.TM != 1 && c.TM != 2 && c.TM != 4 && c.TM != 8) || (c.TN != 1 && c.TN != 2 && c.TN != 4 && c.TN != 8))
    return "TM and TN must be 1, 2, 4 or 8";
  if (c.BM % c.WM != 0 || c.BN % c.WN != 0) return "the block tile is not a multiple of the warp tile";
  if (c.WM * c.WN % (32 * c.TM * c.TN * c.WNITER) != 0 || c.WMITER() < 1)
    return "the warp tile is not 32 thread tiles times WNITER";
  if (c.WM % (c.WMITER() * c.TM) != 0 || c.WN % (c.WNITER * c.TN) != 0 || c.lanes_m() * c.lanes_n() != 32)
    return "the warp's sub-tiles do not divide the warp tile";
  if (c.BM % 4 != 0 || c.BN % 4 != 0) return "BM and BN must be multiples of 4 (16-byte shared-memory accesses)";
  if (c.BK % c.slices != 0 || c.BK / c.slices % 4 != 0) return "each slice must have a multiple of 4 of BK";
  if (c.threads() > 1024) return "more than 1024 threads per block";
  if (c.accumulators() > 192) return "more than 192 accumulators per thread";
  if (fragments_in_place(c) && c.load != LoadPath::warp_specialized)
    return "more than 144 accumulators per thread are for warp_specialized only";
  if (c.accumulators() < 4) return "fewer than 4 accumulators per thread: shared-memory bound";
  if (c.acc_init == AccInit::shifted && ((c.order == FmaOrder::rows ? c.thread_columns() : c.thread_rows()) % 4 != 0))
    return "shifted accumulators need a multiple of 4 along the FMA order";
  // About 2,048 FMAs are 32 KB of code, where loops begin to miss the instruction cache; 12 x 12 results by BK 16 just pass.
  // With 12 x 16 by 16 (52 KB) large products took a fifth longer than with 12 x 16 by 8.
  if (c.accumulators() * (c.BK / c.slices) > 2304) return "main loop longer than the instruction cache likes (2304 FMAs)";
  return nullptr;
}

// Why the load path cannot serve this shape on such a GPU, or nullptr.
constexpr const char* why_load_path_invalid(const KernelConfig& c, const DeviceLimits& limits) {
  if (c.load == LoadPath::register_staged) {
    if (c.stages != 2) return "register staging has exactly 2 stages";
  } else {
    if (c.stages < 2) return "cp.async needs 2 stages or more";
    if (limits.compute_capability < 80) return "cp.async needs sm_80 or newer";
  }
  if (has_barrier_ring(c.load)) {
    if (limits.compute_capability < 90) return "the tensor copy engine needs sm_90 or newer";
    if (c.BM > 256 || c.BN > 256) return "the tensor copy engine copies at most 256 rows at once";
  }
  if (c.load == LoadPath::tma) {
    if (c.BK != 16 && c.BK % 32 != 0) return "swizzling needs BK 16 or a multiple of 32";
    if (c.WM % 8 != 0 || c.WN % 8 != 0) return "swizzling needs warp tiles of a multiple of 8";
    const int depth = c.BK / c.slices, span = swizzle_span(c);
    if (depth % span != 0 && span % depth != 0) return "a slice must share out whole swizzled pieces";
  }
  if (is_specialized(c.load)) {
    if (limits.compute_capability != 90) return "setmaxnreg of the copy warpgroup is written for sm_90";
    if (c.TM % 4 != 0 || c.TN % 4 != 0) return "the computing warps load quads: TM and TN must be 4 or 8";
    if (c.compute_threads() % 128 != 0) return "computing warps must form whole warpgroups";
    if (c.BK != 8 && c.BK != 16 && c.BK != 32 && c.BK != 64) return "the copy warpgroup needs BK 8, 16, 32 or 64";
    if (c.BM % (128 / c.BK) != 0 || c.BN % (128 / c.BK) != 0) return "the copy warpgroup does not divide the tile";
    // The last block of a split tile needs a quad for each thread beside the ring where the tile has few of them.
    if (c.BM * c.BN / 2 <= c.compute_threads() && slice_floats(c) < 4 * c.compute_threads())
      return "too many threads for so small a tile";
    if (c.load == LoadPath::warp_specialized_k) {
      if (c.BK < 16) return "swizzling needs BK 16 or a multiple of 32";
      if (c.WM % 8 != 0 || c.WN % 8 != 0) return "swizzling needs warp tiles of a multiple of 8";
    }
    if (compute_registers(c, copy_registers({c}), limits.registers_per_sm) < 32)
      return "min_blocks blocks leave too few registers";
    return nullptr;
  }
  if ((c.BM + c.BN) * c.BK / c.threads() > 64) return "more than 64 floats copied per thread and stage";
  return nullptr;
}

// The reason why `c` cannot run on a GPU with these limits, or nullptr.
constexpr const char* why_tile_invalid(const KernelConfig& c, const DeviceLimits& limits) {
  if (const char* why = why_tile_shape_invalid(c)) return why;
  if (const char* why = why_load_path_invalid(c, limits)) return why;
  const int shared_bytes = worst_tile_shared_bytes(c);
  if (shared_bytes > limits.shared_bytes_per_block) return "more shared memory than a block can have";
  // The runtime keeps 1 KB of shared memory per resident block.
  if (c.min_blocks * (shared_bytes + 1024) > limits.shared_bytes_per_sm)
    return "min_blocks blocks do not fit the SM's shared memory";
  if (c.min_blocks * c.threads() > limits.threads_per_sm) return "min_blocks blocks have too many threads for an SM";
  const int launch_cap = limits.registers_per_sm / (c.min_blocks * c.threads());
  const int cap = is_specialized(c.load) ? compute_registers(c, copy_registers({c}), limits.registers_per_sm)
                  : launch_cap < 255     ? launch_cap
                                         : 255;
  if (estimated_tile_registers(c) > cap) return "would spill registers";
  // Where an operand is not aligned, the same configuration runs with cp.async.
  if (c.load == LoadPath::tma) {
    KernelConfig unaligned = c;
    unaligned.load = LoadPath::async;
    return why_tile_invalid(unaligned, limits);
  }
  return nullptr;
}

}  // namespace gemm
