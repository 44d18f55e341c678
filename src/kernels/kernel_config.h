// How one kernel is described: the searched configuration, and the variant that is compiled for a problem's layout.
//
// This header is read by the host compiler, by NVRTC and by the emulator, so it includes nothing.
#pragma once

namespace gemm {

// op(X) of BLAS. A conjugate transpose of real data is a transpose.
enum class Op : unsigned char { N, T };

// How operands reach shared memory.
//   async            cp.async (sm_80+); an operand that is contiguous along k keeps k as its fast index there
//   async_transpose  cp.async (sm_80+); an operand that is contiguous along k is transposed by 4-byte copies
//   register_staged  global -> registers -> shared memory, transposed on the way (any GPU, the only path on sm_75)
enum class LoadPath : unsigned char { async, async_transpose, register_staged };

// Order of the FMAs of one k step: along the rows or the columns of the thread's results, back and forth, so that one
// operand register is reused from each FMA to the next.
enum class FmaOrder : unsigned char { rows, columns };

// How accumulators are zeroed. `shifted` loads zeros with 16-byte loads moved by one element, which makes ptxas place each
// accumulator in the register bank that the streaming operand is not in (docs/performance.md, "Register banks").
enum class AccInit : unsigned char { plain, shifted };

// One point of the search space. Lengths are in elements.
//
//   BM x BN   block tile, BK deep         WM x WN   warp tile, WMITER x WNITER repeats of a sub-tile
//   TM x TN   thread tile in a sub-tile   slices    groups of warps that share the k of every stage and are summed at the
//   end
//
// A sub-tile is WM/WMITER x WN/WNITER; its 32 lanes own TM x TN results each, so WMITER follows from the other parameters.
struct KernelConfig {
  int BM = 128, BN = 128, BK = 16;
  int WM = 64, WN = 32;
  int WNITER = 1;
  int TM = 8, TN = 8;
  int stages = 3;
  int slices = 1;
  int min_blocks = 1;  // occupancy hint of __launch_bounds__
  LoadPath load = LoadPath::async_transpose;
  FmaOrder order = FmaOrder::rows;
  AccInit acc_init = AccInit::plain;

  friend constexpr bool operator==(const KernelConfig&, const KernelConfig&) = default;

  constexpr int WMITER() const { return WM * WN / (32 * TM * TN * WNITER); }
  constexpr int lanes_m() const { return WM / (WMITER() * TM); }
  constexpr int lanes_n() const { return WN / (WNITER * TN); }
  constexpr int warps_m() const { return BM / WM; }
  constexpr int warps_n() const { return BN / WN; }
  constexpr int threads() const { return warps_m() * warps_n() * slices * 32; }
  constexpr int thread_rows() const { return TM * WMITER(); }
  constexpr int thread_columns() const { return TN * WNITER; }
  constexpr int accumulators() const { return thread_rows() * thread_columns(); }
};

// Where one operand's stage lies in shared memory.
struct OperandLayout {
  int rows;           // BM or BN
  bool k_contiguous;  // in global memory
  bool k_fast;        // in shared memory: [rows][ld] with k fast, else [BK][ld] with rows fast
  int ld;             // padded length of the fast index
  int floats;         // of one stage

  friend constexpr bool operator==(const OperandLayout&, const OperandLayout&) = default;
};

constexpr OperandLayout operand_layout(const KernelConfig& c, int rows, bool k_contiguous) {
  const bool k_fast = k_contiguous && c.load == LoadPath::async;
  // Pads of 4 floats keep 16-byte alignment. With k fast, 8 lanes that read 16 bytes of 8 neighbouring rows meet 8 different
  // bank groups; after a transpose, the 4-byte stores of one warp (8 k of 4 rows, BK = 8) meet 32 different banks.
  const int ld = k_fast ? c.BK + 4 : k_contiguous ? rows + 4 : rows;
  return {rows, k_contiguous, k_fast, ld, (k_fast ? rows : c.BK) * ld};
}

// What is compiled: a configuration for the layout of a problem.
struct KernelVariant {
  KernelConfig config;
  Op op_a = Op::N, op_b = Op::N;
  int vec_a = 4, vec_b = 4;  // floats per global load of each operand: 4, 2 or 1, as pointer, ld, stride and size allow
  bool long_ld = false;      // 64-bit offsets inside a tile, for leading dimensions of millions (launch.cpp)

  friend constexpr bool operator==(const KernelVariant&, const KernelVariant&) = default;

  constexpr OperandLayout layout_a() const { return operand_layout(config, config.BM, op_a == Op::T); }
  constexpr OperandLayout layout_b() const { return operand_layout(config, config.BN, op_b == Op::N); }
  constexpr int stage_floats() const { return layout_a().floats + layout_b().floats; }
  constexpr int ring_floats() const { return config.stages * stage_floats(); }
  constexpr int slice_floats() const { return config.slices > 1 ? config.slices * config.BM * config.BN : 0; }
  // Ring or the slices' partial tiles, whichever is larger, then 16 bytes: zeros for AccInit::shifted, later the ticket
  // flag.
  constexpr int shared_bytes() const { return 4 * (ring_floats() > slice_floats() ? ring_floats() : slice_floats()) + 16; }
};

// The limits of a GPU that decide whether a configuration can run.
struct DeviceLimits {
  int compute_capability = 90;  // major * 10 + minor
  int shared_bytes_per_block = 232448;
  int shared_bytes_per_sm = 233472;
  int registers_per_sm = 65536;
  int threads_per_sm = 2048;
};

// Shared memory of the op pair that needs most.
constexpr int worst_shared_bytes(const KernelConfig& c) {
  int worst = 0;
  for (int ops = 0; ops < 4; ++ops) {
    KernelVariant v{c, ops & 1 ? Op::T : Op::N, ops & 2 ? Op::T : Op::N};
    worst = v.shared_bytes() > worst ? v.shared_bytes() : worst;
  }
  return worst;
}

// Registers that the main loop needs at least: accumulators, fragments, copy offsets and addresses. With k fast a fragment
// holds 4 steps of k, else two steps of one.
constexpr int estimated_registers(const KernelConfig& c) {
  const int fragment_steps = c.load == LoadPath::async ? 4 : 2;
  const int fragments = fragment_steps * (c.thread_rows() + c.thread_columns());
  const int copies = (c.BM + c.BN) * c.BK / c.threads() / (c.load == LoadPath::async_transpose ? 2 : 4);
  const int staged = c.load == LoadPath::register_staged ? (c.BM + c.BN) * c.BK / c.threads() : 0;
  return c.accumulators() + fragments + copies + staged + 18;
}

// The reason why `c` cannot run on a GPU with these limits, or nullptr. Used to prune the search space, by the kernel's
// static_assert, and by `gemm-tune --list`.
constexpr const char* why_invalid(const KernelConfig& c, const DeviceLimits& limits) {
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
  if (c.accumulators() > 144) return "more than 144 accumulators per thread";
  if (c.accumulators() < 4) return "fewer than 4 accumulators per thread: shared-memory bound";
  if (c.acc_init == AccInit::shifted && ((c.order == FmaOrder::rows ? c.thread_columns() : c.thread_rows()) % 4 != 0))
    return "shifted accumulators need a multiple of 4 along the FMA order";
  if (c.load == LoadPath::register_staged ? c.stages != 2 : c.stages < 2)
    return c.load == LoadPath::register_staged ? "register staging has exactly 2 stages" : "cp.async needs 2 stages or more";
  if (c.load != LoadPath::register_staged && limits.compute_capability < 80) return "cp.async needs sm_80 or newer";
  if ((c.BM + c.BN) * c.BK / c.threads() > 64) return "more than 64 floats copied per thread and stage";
  // About 2,048 FMAs are 32 KB of code, where loops begin to miss the instruction cache; 12 x 12 results by BK 16 just pass.
  if (c.accumulators() * (c.BK / c.slices) > 2304) return "main loop longer than the instruction cache likes (2304 FMAs)";
  if (worst_shared_bytes(c) > limits.shared_bytes_per_block) return "more shared memory than a block can have";
  // The runtime keeps 1 KB of shared memory per resident block.
  if (c.min_blocks * (worst_shared_bytes(c) + 1024) > limits.shared_bytes_per_sm)
    return "min_blocks blocks do not fit the SM's shared memory";
  if (c.min_blocks * c.threads() > limits.threads_per_sm) return "min_blocks blocks have too many threads for an SM";
  const int register_cap = limits.registers_per_sm / (c.min_blocks * c.threads());
  if (estimated_registers(c) > (register_cap < 255 ? register_cap : 255)) return "would spill registers";
  return nullptr;
}

}  // namespace gemm
