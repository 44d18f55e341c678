// The one argument of each kernel, shared by host, NVRTC and emulator. All matrices are column-major FP32.
#pragma once

namespace gemm {

// What an epilogue adds to C: one float for each row of a matrix. The vectors of a batch lie `stride` elements apart, 0
// where there is one for all.
struct Bias {
  const float* data;
  long long stride;
};

// C = alpha * op(A) * op(B) + beta * C for `batch` matrices. Grid (tiles_m * tiles_n, split_k, batch); of persistent blocks
// (LoadPath::warp_specialized) (blocks, 1, 1); of the batch family (blocks of a few matrices, 1, 1).
struct TileArgs {
  const float* a;
  const float* b;
  float* c;
  long long lda, ldb, ldc;
  long long stride_a, stride_b, stride_c;  // elements between the matrices of a batch
  int m, n, k;
  int tiles_m, tiles_n;
  int raster_group;  // tile rows that are walked together, so that neighbouring blocks share B in L2
  int k_per_split;   // k range of one block, a multiple of BK unless split_k is 1
  int split_k;       // blocks that share one tile's k range
  int wide_c;        // 1: C allows 16-byte accesses (pointer, ldc and stride)
  int use_tickets;   // 1: the last block of a tile reduces the split; 0: ReduceArgs' kernel does
  int batch;         // matrices, for kernels whose grid does not say it
  int whole_items;   // persistent blocks: (tile, split, batch) items that one block computes whole, before the others
  int shared_tiles;  // and tiles after them whose k all blocks share evenly (stream-k); split_k is 1 then
  float alpha, beta;
  float* workspace;   // [batch][tile][split][BN][BM] partial tiles, already times alpha; unused when split_k is 1
  unsigned* tickets;  // [batch][tile], zero between launches
  // Of variants with `indirect` only, and each only where it is not null: in place of alpha, beta, and a, b, c with strides.
  const float* alpha_pointer;
  const float* beta_pointer;
  const float* const* a_array;
  const float* const* b_array;
  float* const* c_array;
  Bias bias;  // of variants whose epilogue adds one
};

// How the tensor copy engine finds one operand; made by Device::encode_tensor_map.
struct alignas(128) TensorMap {
  unsigned long long words[16];
};

// Arguments of the tile kernels that are fed by the tensor copy engine. An operand that does not use it has no map.
struct TmaTileArgs {
  TileArgs tile;
  TensorMap map_a, map_b;
};

// C = sum over splits + beta * C, after a tile kernel with use_tickets 0; grid (tiles, BM*BN/4/256 rounded up, batch), 256
// threads.
struct ReduceArgs {
  const float* workspace;
  float* c;
  long long ldc, stride_c;
  int m, n;
  int tiles_m, tiles_n, raster_group;
  int BM, BN;
  int split_k;
  int wide_c;
  float beta;
  // Of reduce_splits_indirect and reduce_splits_with only: the tile kernel's pointers, and its bias.
  const float* alpha_pointer;
  const float* beta_pointer;
  float* const* c_array;
  Bias bias;
};

// C = beta * C (zeros where beta is 0, without reading C); grid-stride over m * n * batch elements.
struct ScaleArgs {
  float* c;
  long long ldc, stride_c;
  int m, n, batch;
  float beta;
  // Of scale_indirect and scale_with only, in place of beta and of c with its stride where they are not null.
  const float* beta_pointer;
  float* const* c_array;
  Bias bias;  // of scale_with
};

// What the relayout kernel copies in one block: a square of floats, by that many threads.
inline constexpr int kRelayoutTile = 64;
inline constexpr int kRelayoutThreads = 256;

// One operand to copy: to[k * to_ld + row] = its element (row, k), which lies at from[row * ld + k] where along_k is 1, else
// at from[k * ld + row]. Tiles are numbered along rows first; an operand that is not copied has none.
struct RelayoutOperand {
  const float* from;
  float* to;
  long long ld, stride, to_ld, to_stride;
  int rows, k;
  int along_k;
  int tiles;     // of one matrix
  int matrices;  // 1 where the whole batch shares one
};

// Grid (tiles of A and B, matrices, 1), kRelayoutThreads threads.
struct RelayoutArgs {
  RelayoutOperand a, b;
};

// FP64 reference of a problem, for checking: sum[i] = op(A) op(B), magnitude[i] = |op(A)| |op(B)|, packed m x n x batch.
// grid (m/16, n/16 rounded up as one dimension, 1, batch), 16 x 16 threads.
struct ReferenceArgs {
  const float* a;
  const float* b;
  double* sum;
  double* magnitude;
  long long lda, ldb, stride_a, stride_b;
  int m, n, k;
  int op_a_t, op_b_t;  // 1: transposed
};

// Compares C with the reference: worst |c - expected| / bound over all elements, where NaN counts as infinity.
// bound = scaled so that 1 is the largest error that is accepted (verify.h has the formula); grid-stride over m * n * batch.
struct CompareArgs {
  const float* c;
  const float* c_before;  // C before the call, same layout as c; not read when beta is 0
  const double* sum;
  const double* magnitude;
  long long ldc, stride_c;
  int m, n, k, batch;
  float alpha, beta;
  unsigned* worst;  // bits of a non-negative float, so that atomicMax orders them
};

// Counts the words of an allocation outside C (guard zones before and after, ld gaps, gaps between matrices) that no longer
// hold `sentinel`; grid-stride over `total`.
struct GuardArgs {
  const unsigned* allocation;
  long long total;  // words in the allocation
  long long front;  // words before C's first element
  long long ldc, stride_c;
  int m, n, batch;
  unsigned sentinel;
  unsigned* violations;
};

// Fills with pseudo-random values in [-1, 1) that depend on seed and index only.
struct FillArgs {
  float* data;
  long long count;
  unsigned seed;
};

// One rung of the ladder (ladder.cuh): C = alpha * A * B + beta * C; grid (tiles of C).
struct LadderArgs {
  const float* a;
  const float* b;
  float* c;
  long long lda, ldb, ldc;
  int m, n, k;
  int wide;  // 1: all three matrices allow 16-byte accesses
  float alpha, beta;
};

// What the peak kernels (peaks.cuh) do per thread.
inline constexpr int kPeakChains = 16;
inline constexpr int kPeakRepeats = 16;
inline constexpr int kCopyQuads = 4;

// Every thread makes rounds * kPeakRepeats * kPeakChains multiply-adds; `out` holds one float per thread.
struct FfmaPeakArgs {
  float* out;
  int rounds;
  float factor, term, step;
};

// Copies `quads` times four floats; grid (quads / (kCopyQuads * threads) rounded up).
struct CopyPeakArgs {
  const float* from;
  float* to;
  long long quads;
};

}  // namespace gemm
