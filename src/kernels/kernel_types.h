// The parameters of a kernel: the searched configuration, and the limits of the GPU it has to fit.
//
// This header and the *_config.h beside it are read by the host compiler, by NVRTC and by the emulator, so they include
// nothing else.
#pragma once

namespace gemm {

// op(X) of BLAS. A conjugate transpose of real data is a transpose.
enum class Op : unsigned char { N, T };

// How operands reach shared memory.
//   async            cp.async (sm_80+); an operand that is contiguous along k keeps k as its fast index there
//   async_transpose  cp.async (sm_80+); an operand that is contiguous along k is transposed by 4-byte copies
//   register_staged  global -> registers -> shared memory, transposed on the way (any GPU, the only path on sm_75)
//   tma              the tensor copy engine (sm_90+), started by one lane of the first warp; an operand that is contiguous
//                    along k keeps k as its fast index, swizzled. Operands that are not aligned to 16 bytes take `async`
//   warp_specialized a warpgroup of its own copies (sm_90): by the tensor copy engine where rows are contiguous and aligned,
//                    else by 4-byte cp.async, which transpose an operand that is contiguous along k. Blocks are persistent
//   warp_specialized_k  the same, but an aligned operand that is contiguous along k keeps k as its fast index, swizzled, and
//                    comes by the tensor copy engine too
enum class LoadPath : unsigned char { async, async_transpose, register_staged, tma, warp_specialized, warp_specialized_k };

// With a copy warpgroup and persistent blocks.
constexpr bool is_specialized(LoadPath load) {
  return load == LoadPath::warp_specialized || load == LoadPath::warp_specialized_k;
}

// Order of the FMAs of one k step: along the rows or the columns of the thread's results, back and forth, so that one
// operand register is reused from each FMA to the next.
enum class FmaOrder : unsigned char { rows, columns };

// How accumulators are zeroed. `shifted` loads zeros with 16-byte loads moved by one element, which makes ptxas place each
// accumulator in the register bank that the streaming operand is not in (docs/performance.md, "Register banks").
enum class AccInit : unsigned char { plain, shifted };

// Which kernel a configuration is for; each has a header with the rules of its parameters.
//   tile    block tiles of C with k in a ring of shared memory (tile_config.h)
//   stream  a matrix times one to a few vectors: the large operand goes straight to registers (stream_config.h)
//   batch   one warp for each tiny matrix of a batch (batch_config.h)
enum class Family : unsigned char { tile, stream, batch };

// What becomes of an element of C last, in the kernel that stores it: of x = alpha * op(A) * op(B) + beta * C
//   bias       x + bias, where the bias is a vector with one float for each row of C
//   relu       max(x, 0), where NaN stays NaN
//   bias_relu  max(x + bias, 0)
enum class Epilogue : unsigned char { none, bias, relu, bias_relu };
constexpr bool has_bias(Epilogue e) { return e == Epilogue::bias || e == Epilogue::bias_relu; }
constexpr bool has_relu(Epilogue e) { return e == Epilogue::relu || e == Epilogue::bias_relu; }

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
  Family family = Family::tile;

  friend constexpr bool operator==(const KernelConfig&, const KernelConfig&) = default;

  constexpr int WMITER() const { return WM * WN / (32 * TM * TN * WNITER); }
  constexpr int lanes_m() const { return WM / (WMITER() * TM); }
  constexpr int lanes_n() const { return WN / (WNITER * TN); }
  constexpr int warps_m() const { return BM / WM; }
  constexpr int warps_n() const { return BN / WN; }
  constexpr int compute_threads() const { return warps_m() * warps_n() * slices * 32; }
  // With the copy warpgroup of LoadPath::warp_specialized.
  constexpr int threads() const { return compute_threads() + (is_specialized(load) ? 128 : 0); }
  constexpr int thread_rows() const { return TM * WMITER(); }
  constexpr int thread_columns() const { return TN * WNITER; }
  constexpr int accumulators() const { return thread_rows() * thread_columns(); }
};

// The limits of a GPU that decide whether a configuration can run.
struct DeviceLimits {
  int compute_capability = 90;  // major * 10 + minor
  int shared_bytes_per_block = 232448;
  int shared_bytes_per_sm = 233472;
  int registers_per_sm = 65536;
  int threads_per_sm = 2048;
};

// What is compiled: a configuration for the layout of a problem.
struct KernelVariant {
  KernelConfig config;
  Op op_a = Op::N, op_b = Op::N;
  int vec_a = 4, vec_b = 4;  // floats per global load of each operand: 4, 2 or 1, as pointer, ld, stride and size allow
  bool long_ld = false;      // 64-bit offsets inside a tile, for leading dimensions of millions (launch.cpp)
  bool cluster = false;      // the blocks that share a tile's k form a cluster and add their parts (tile family, sm_90+)
  bool indirect = false;     // alpha, beta or the matrices are found by pointers on the GPU (device/indirect.cuh)
  Epilogue epilogue = Epilogue::none;  // done to C last (device/bias_relu.cuh)

  friend constexpr bool operator==(const KernelVariant&, const KernelVariant&) = default;

  constexpr bool a_along_k() const { return op_a == Op::T; }  // A is contiguous along k
  constexpr bool b_along_k() const { return op_b == Op::N; }
};

}  // namespace gemm
