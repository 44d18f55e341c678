// The warp-tiled SIMT kernel: C = alpha * op(A) * op(B) + beta * C, strict FP32.
//
//        BN                            a block: BM x BN of C, a ring of `stages` slabs of A (BM x BK) and B (BK x BN)
//     +------+------+                  a warp:  WM x WN, as WMITER x WNITER sub-tiles of 32 lanes
//  BM | WN   |      |                  a lane:  TM x TN of each sub-tile, all in registers
//     |WM  w0|  w1  |                  slices:  groups of warps that each take BK/slices of every stage
//     +------+------+
//     |  w2  |  w3  |   shared memory:  | A0 | B0 | A1 | B1 | ... |  zeros/flag (16 bytes)
//     +------+------+                   operand.cuh has the layout of one slab and its pad
//
// Registers: thread_rows x thread_columns accumulators, and two fragments of one step of k (or one fragment of four steps,
// where an operand has k fast), the offsets of the copies, and a few addresses; tile_config.h estimates them.
//
// Main loop, fragments double-buffered: while step s is multiplied, step s + 1 is loaded; the first step of a stage is
// loaded during the last step of the stage before, right behind the one barrier of the stage. Copies for stage t + stages -
// 1 are issued in the first step of stage t: their slot was read last in stage t - 1, before that barrier. With k fast there
// are too few registers for a second fragment: each group of four steps is loaded and multiplied, and the barrier ends the
// stage.
#pragma once

#include "kernels/device/epilogue.cuh"
#include "kernels/device/fragment.cuh"
#include "kernels/device/operand.cuh"
#include "kernels/device/platform.cuh"

namespace gemm {

template <KernelVariant V>
struct Tile {
  static constexpr KernelConfig kConfig = V.config;
  static_assert(why_invalid(kConfig, DeviceLimits{}) == nullptr, "this configuration cannot run on any GPU");

  static constexpr int BM = kConfig.BM, BN = kConfig.BN, BK = kConfig.BK;
  static constexpr int kStages = kConfig.stages, kSlices = kConfig.slices;
  static constexpr int kThreads = kConfig.compute_threads(), kWarpsPerSlice = kConfig.warps_m() * kConfig.warps_n();
  static constexpr int kRows = kConfig.thread_rows(), kColumns = kConfig.thread_columns();
  static constexpr bool kStaged = kConfig.load == LoadPath::register_staged;
  using Sync = ComputingThreads<kConfig.load, kThreads>;
  using End = TileEnd<BM, BN, kThreads, V.epilogue, Sync>;
  using Target = typename End::Target;

  using OperandA = Operand<V, true>;
  using OperandB = Operand<V, false>;
  static constexpr OperandLayout kLayoutA = layout_a(V), kLayoutB = layout_b(V);
  using FragmentA = Fragment<kConfig.WMITER(), kConfig.TM, kConfig.lanes_m(), kLayoutA.k_fast, kLayoutA.ld>;
  using FragmentB = Fragment<kConfig.WNITER, kConfig.TN, kConfig.lanes_n(), kLayoutB.k_fast, kLayoutB.ld>;
  static constexpr bool kFourSteps = kLayoutA.k_fast || kLayoutB.k_fast;
  static constexpr int kSteps = kFourSteps ? 4 : 1;      // of k in one fragment
  static constexpr int kGroups = BK / kSlices / kSteps;  // fragments of one stage and slice
  static constexpr int kBuffers = kFourSteps ? 1 : 2;

  struct Fragments {
    float a[kSteps][kRows], b[kSteps][kColumns];
  };

  // Where this thread computes.
  int slice, warp_m, warp_n, lane_m, lane_n;
  float* shared;

  GEMM_DEVICE void init(int thread) {
    shared = dynamic_shared();
    const int warp = thread / 32;
    slice = warp / kWarpsPerSlice;
    warp_m = warp % kWarpsPerSlice % kConfig.warps_m();
    warp_n = warp % kWarpsPerSlice / kConfig.warps_m();
    lane_position<kConfig.lanes_m()>(thread % 32, lane_m, lane_n);
  }

  GEMM_DEVICE float* stage_a(int stage) const { return shared + stage * stage_floats(V); }
  GEMM_DEVICE float* stage_b(int stage) const { return stage_a(stage) + kLayoutA.floats; }
  // Where the slices' tiles meet: the ring, unless the next tile's copies are under way in it.
  GEMM_DEVICE float* slices_area() const { return shared + (is_specialized(kConfig.load) ? ring_floats(V) : 0); }
  GEMM_DEVICE float* trailer() const { return shared + trailer_offset(V) / 4; }

  GEMM_DEVICE void load_fragments(Fragments& f, int stage, int group) const {
    const int k = slice * (BK / kSlices) + group * kSteps;
    const int row_a = warp_m * kConfig.WM, row_b = warp_n * kConfig.WN;
    FragmentA::load(f.a, stage_a(stage) + row_a * (kLayoutA.k_fast ? kLayoutA.ld : 1), lane_m, k);
    FragmentB::load(f.b, stage_b(stage) + row_b * (kLayoutB.k_fast ? kLayoutB.ld : 1), lane_n, k);
  }

  GEMM_DEVICE void multiply_group(float (&acc)[kRows][kColumns], const Fragments& f) const {
    GEMM_UNROLL
    for (int s = 0; s < kSteps; ++s) multiply<kConfig.order>(acc, f.a[s], f.b[s]);
  }

  // Fills the first stages - 1 slots; slot 0 holds the tail of k.
  GEMM_DEVICE void start_copies(OperandA& a, OperandB& b, int blocks, int depth) const {
    const int tail = depth - (blocks - 1) * BK;
    a.copy_tail(stage_a(0), tail);
    b.copy_tail(stage_b(0), tail);
    commit_copies();
    GEMM_UNROLL
    for (int s = 1; s < kStages - 1; ++s) {
      a.copy(stage_a(s), s < blocks);
      b.copy(stage_b(s), s < blocks);
      commit_copies();
    }
  }

  // The main loop with cp.async copies.
  GEMM_DEVICE void run_async(float (&acc)[kRows][kColumns], OperandA& a, OperandB& b, int depth) const {
    const int blocks = (depth + BK - 1) / BK;
    start_copies(a, b, blocks, depth);
    zero<kConfig.acc_init, kConfig.order>(acc, trailer());
    wait_copies<kStages - 2>();
    block_barrier();
    Fragments fragments[kBuffers];
    if constexpr (kBuffers == 2) load_fragments(fragments[0], 0, 0);
    int read = 0, write = kStages - 1;
    GEMM_NO_UNROLL
    for (int t = 0; t < blocks; ++t) {
      const int next = read == kStages - 1 ? 0 : read + 1;
      GEMM_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        if constexpr (kBuffers == 1)
          load_fragments(fragments[0], read, g);
        else if (g < kGroups - 1)
          load_fragments(fragments[(g + 1) % 2], read, g + 1);
        if (g == 0) {
          a.copy(stage_a(write), t + kStages - 1 < blocks);
          b.copy(stage_b(write), t + kStages - 1 < blocks);
          commit_copies();
        }
        // Behind this stage's commit, also where a stage is one group only: then the next stage has arrived.
        if (g == kGroups - 1) {
          wait_copies<kStages - 2>();
          if constexpr (kBuffers == 2) {
            block_barrier();
            load_fragments(fragments[(g + 1) % 2], next, 0);
          }
        }
        multiply_group(acc, fragments[g % kBuffers]);
      }
      if constexpr (kBuffers == 1) block_barrier();
      write = read;
      read = next;
    }
  }

  // The main loop with copies through registers: the next stage is fetched while this one is multiplied.
  GEMM_DEVICE void run_staged(float (&acc)[kRows][kColumns], OperandA& a, OperandB& b, int depth) const {
    const int blocks = (depth + BK - 1) / BK;
    typename OperandA::Staged staged_a;
    typename OperandB::Staged staged_b;
    const int tail = depth - (blocks - 1) * BK;
    a.fetch(staged_a, tail);
    b.fetch(staged_b, tail);
    a.base = a.first, b.base = b.first;
    a.store(staged_a, stage_a(0));
    b.store(staged_b, stage_b(0));
    zero<kConfig.acc_init, kConfig.order>(acc, trailer());
    block_barrier();
    Fragments fragments[2];
    load_fragments(fragments[0], 0, 0);
    int read = 0;
    GEMM_NO_UNROLL
    for (int t = 0; t < blocks; ++t) {
      const bool more = t + 1 < blocks;
      GEMM_UNROLL
      for (int g = 0; g < kGroups; ++g) {
        if (g == 0 && more) {
          a.fetch(staged_a, BK);
          b.fetch(staged_b, BK);
          a.advance(), b.advance();
        }
        if (g == kGroups - 1) {
          if (more) {
            a.store(staged_a, stage_a(read ^ 1));
            b.store(staged_b, stage_b(read ^ 1));
          }
          block_barrier();
          load_fragments(fragments[(g + 1) % 2], read ^ 1, 0);
        } else {
          load_fragments(fragments[(g + 1) % 2], read, g + 1);
        }
        multiply_group(acc, fragments[g % 2]);
      }
      read ^= 1;
    }
  }

  GEMM_DEVICE int row_of(int i) const { return warp_m * kConfig.WM + FragmentA::row(lane_m, i); }
  GEMM_DEVICE int column_of(int j) const { return warp_n * kConfig.WN + FragmentB::row(lane_n, j); }

  // Some of a thread's results: numbers [first, end) of them, counted down the columns.
  struct Part {
    int first, end;
    GEMM_DEVICE bool has(int i, int j) const { return j * kRows + i >= first && j * kRows + i < end; }
    GEMM_DEVICE bool has_column(int j) const { return (j + 1) * kRows > first && j * kRows < end; }
  };
  static constexpr int kResults = kRows * kColumns;

  // How results leave the registers: times alpha, or as they are where that is done already.
  struct TimesAlpha {
    float alpha;
    GEMM_DEVICE float operator()(float x) const { return scaled(alpha, x); }
  };
  struct AsTheyAre {
    GEMM_DEVICE float operator()(float x) const { return x; }
  };

  // Straight from registers to C. How is decided once for the whole tile: with a decision for each access, 60 instructions
  // apart, 1024 x 1024 x 128 took 9.6 us instead of 8.7 (docs/performance.md, "Stores without branches").
  template <class Scale>
  GEMM_DEVICE void store_direct(const float (&acc)[kRows][kColumns], const Target& target, const Scale& scale,
                                Part part = {0, kResults}) const {
    constexpr int kWidest = FragmentA::kAdjacent % 4 == 0 ? 4 : 1;
    const bool widest = kWidest == 1 || takes_quads(target.out, target.row + BM);
    if (target.out.beta == 0.0f)
      widest ? store_as<kWidest, false>(acc, target, scale, part) : store_as<1, false>(acc, target, scale, part);
    else
      widest ? store_as<kWidest, true>(acc, target, scale, part) : store_as<1, true>(acc, target, scale, part);
  }

  // The bias of this thread's rows, read once for all columns.
  GEMM_DEVICE static void load_bias(float (&bias)[kRows], const float* first, int rows) {
    GEMM_UNROLL
    for (int i = 0; i < kRows; ++i)
      bias[i] = FragmentA::row(0, i) < rows ? bias_at<V.epilogue>(first, FragmentA::row(0, i)) : 0.0f;
  }

  // `Width` rows at once. C is loaded for a whole column before any of it is used, so that the loads wait together.
  template <int Width, bool AddsC, class Scale>
  GEMM_DEVICE void store_as(const float (&acc)[kRows][kColumns], const Target& target, const Scale& scale, Part part) const {
    const Output<V.epilogue>& out = target.out;
    const int row = target.row + row_of(0), column = target.column + column_of(0);
    float* corner = out.c + column * out.ldc + row;
    float bias[kRows] = {};
    if constexpr (has_bias(V.epilogue)) load_bias(bias, out.bias + row, out.m - row);
    GEMM_UNROLL
    for (int j = 0; j < kColumns; ++j) {
      if (!part.has_column(j)) continue;
      float* line = corner + FragmentB::row(0, j) * out.ldc;
      int rows = FragmentB::row(0, j) < out.n - column ? out.m - row : 0;
      forget(rows);  // kept for all columns, the comparisons would take more registers than there are
      float old[kRows];
      GEMM_UNROLL
      for (int i = 0; AddsC && i < kRows; i += Width)
        if (part.has(i, j)) load_old<Width>(line + FragmentA::row(0, i), FragmentA::row(0, i) < rows, old + i);
      GEMM_UNROLL
      for (int i = 0; i < kRows; i += Width) {
        if (!part.has(i, j)) continue;
        float v[Width];
        GEMM_UNROLL
        for (int e = 0; e < Width; ++e) {
          v[e] = scale(acc[i + e][j]);
          if constexpr (AddsC) v[e] = fmaf(out.beta, old[i + e], v[e]);
          v[e] = finished<V.epilogue>(v[e], bias[i + e]);
        }
        if (FragmentA::row(0, i) < rows) store_at(line + FragmentA::row(0, i), v);
      }
    }
  }

  template <class Scale>
  GEMM_DEVICE static float4 quad(const float (&acc)[kRows][kColumns], int i, int j, const Scale& scale) {
    return make_float4(scale(acc[i][j]), scale(acc[i + 1][j]), scale(acc[i + 2][j]), scale(acc[i + 3][j]));
  }

  // To a tile [BN][BM] in shared memory or in the workspace.
  template <class Scale>
  GEMM_DEVICE void store_tile(const float (&acc)[kRows][kColumns], float* tile, const Scale& scale,
                              Part part = {0, kResults}) const {
    constexpr int kStep = FragmentA::kAdjacent % 4 == 0 ? 4 : 1;
    GEMM_UNROLL
    for (int j = 0; j < kColumns; ++j) {
      GEMM_UNROLL
      for (int i = 0; i < kRows; i += kStep) {
        if (!part.has(i, j)) continue;
        float* p = tile + column_of(j) * BM + row_of(i);
        if constexpr (kStep == 4)
          *reinterpret_cast<float4*>(p) = quad(acc, i, j, scale);
        else
          *p = scale(acc[i][j]);
      }
    }
  }

  // The slices' tiles meet in shared memory and are added in slice order; put(q, sum) takes quad q of the sum.
  template <class Put>
  GEMM_DEVICE void add_slices(const float (&acc)[kRows][kColumns], TimesAlpha scale, const Put& put) const {
    Sync::wait();  // the ring is free, or the last tile's sum is read
    store_tile(acc, slices_area() + slice * (BM * BN), scale);
    Sync::wait();
    const float4* tiles = reinterpret_cast<const float4*>(slices_area());
    for (int q = static_cast<int>(threadIdx.x); q < End::kQuads; q += kThreads) {
      float4 sum = tiles[q];
      GEMM_UNROLL
      for (int s = 1; s < kSlices; ++s) add(sum, tiles[s * End::kQuads + q]);
      put(q, sum);
    }
  }

  // Where slices share out the sum (slices_share_sum), each adds and stores its part of every thread's results from
  // registers. Only what the others hold of it goes through shared memory:
  //
  //   slices' area:  [holder][quad of a thread's results][thread of the slice]
  static constexpr int kShare = kResults / kSlices, kThreadsPerSlice = kThreads / kSlices;

  GEMM_DEVICE float4* exchanged(int holder, int i, int j) const {
    const int thread = static_cast<int>(threadIdx.x) % kThreadsPerSlice;
    return reinterpret_cast<float4*>(slices_area()) + (holder * (kResults / 4) + (j * kRows + i) / 4) * kThreadsPerSlice +
           thread;
  }

  // Leaves what the other slices add.
  GEMM_DEVICE void leave_for_others(const float (&acc)[kRows][kColumns], TimesAlpha scale, Part own) const {
    GEMM_UNROLL
    for (int j = 0; j < kColumns; ++j) {
      GEMM_UNROLL
      for (int i = 0; i < kRows; i += 4)
        if (!own.has(i, j)) *exchanged(slice, i, j) = quad(acc, i, j, scale);
    }
  }

  // Adds this slice's share, in slice order.
  GEMM_DEVICE void add_share(float (&sum)[kRows][kColumns], const float (&acc)[kRows][kColumns], TimesAlpha scale, int owner,
                             Part own) const {
    GEMM_UNROLL
    for (int j = 0; j < kColumns; ++j) {
      GEMM_UNROLL
      for (int i = 0; i < kRows; i += 4) {
        if (!own.has(i, j)) continue;
        float4 own_sum = owner == 0 ? quad(acc, i, j, scale) : *exchanged(0, i, j);
        GEMM_UNROLL
        for (int s = 1; s < kSlices; ++s) add(own_sum, s == owner ? quad(acc, i, j, scale) : *exchanged(s, i, j));
        sum[i][j] = own_sum.x, sum[i + 1][j] = own_sum.y, sum[i + 2][j] = own_sum.z, sum[i + 3][j] = own_sum.w;
      }
    }
  }

  GEMM_DEVICE void store_sum(const float (&acc)[kRows][kColumns], const Target& target, TimesAlpha scale) const {
    Sync::wait();  // the ring is free, or the last tile's shares are read
    GEMM_UNROLL
    for (int s = 0; s < kSlices; ++s)
      if (slice == s) leave_for_others(acc, scale, {s * kShare, (s + 1) * kShare});
    Sync::wait();
    GEMM_UNROLL
    for (int s = 0; s < kSlices; ++s) {
      if (slice != s) continue;
      const Part own{s * kShare, (s + 1) * kShare};
      float sum[kRows][kColumns];
      add_share(sum, acc, scale, s, own);
      if (target.split_k == 1)
        store_direct(sum, target, AsTheyAre{}, own);
      else
        store_tile(sum, reinterpret_cast<float*>(End::partial_tile(target, target.split)), AsTheyAre{}, own);
    }
  }

  // The blocks' parts meet in the shared memory of the cluster.
  GEMM_DEVICE void add_cluster(const float (&acc)[kRows][kColumns], const Target& target, TimesAlpha scale) const {
    if constexpr (kSlices > 1) {
      float4* tile = reinterpret_cast<float4*>(slices_area());
      add_slices(acc, scale, [tile](int q, const float4& sum) { tile[q] = sum; });
    } else {
      Sync::wait();  // the ring is free
      store_tile(acc, slices_area(), scale);
    }
    cluster_barrier();
    End::reduce_cluster(target, shared_pointer(slices_area()));
    cluster_barrier();  // a block that ends takes its shared memory away from its peers
  }

  // To C, or to the workspace, where the parts meet.
  GEMM_DEVICE void finish_alone(const float (&acc)[kRows][kColumns], const Target& target, TimesAlpha scale,
                                bool use_tickets, unsigned* flag) const {
    if constexpr (kSlices > 1 && slices_share_sum(V)) {
      store_sum(acc, target, scale);
    } else if constexpr (kSlices > 1) {
      if (target.split_k == 1 && target.out.beta == 0.0f && takes_quads(target.out, target.row + BM))
        add_slices(acc, scale, [&](int q, const float4& sum) { End::store_whole_quad(target, q, sum); });
      else
        add_slices(acc, scale, [&](int q, const float4& sum) { End::put(target, q, sum); });
    } else if (target.split_k == 1) {
      store_direct(acc, target, scale);
    } else {
      store_tile(acc, reinterpret_cast<float*>(End::partial_tile(target, target.split)), scale);
    }
    if (target.split_k == 1 || !use_tickets) return;
    if (End::is_last_block(target, flag)) End::reduce_splits(target, reinterpret_cast<float4*>(slices_area()));
  }

  // `flag` is a word of shared memory.
  GEMM_DEVICE void finish(const float (&acc)[kRows][kColumns], const Target& target, float alpha, bool use_tickets,
                          unsigned* flag) const {
    if constexpr (V.cluster)
      add_cluster(acc, target, TimesAlpha{alpha});
    else
      finish_alone(acc, target, TimesAlpha{alpha}, use_tickets, flag);
  }

  GEMM_DEVICE static TileItem item_of_block(const TileArgs& args) {
    int tile_m, tile_n;
    tile_position(static_cast<int>(blockIdx.x), args.tiles_m, args.tiles_n, args.raster_group, tile_m, tile_n);
    return block_item<BM, BN>(args, tile_m, tile_n);
  }
};

template <KernelVariant V>
GEMM_DEVICE void tile(const TileArgs& args) {
  if (only_scales<V>(args)) return;
  if constexpr (may_be_unaligned(V)) {
    if (!is_aligned<V>(args, blockIdx.z)) {
      tile<with_single_floats(V)>(args);
      return;
    }
  }
  using T = Tile<V>;
  T t;
  t.init(static_cast<int>(threadIdx.x));
  if (threadIdx.x < 4) t.trailer()[threadIdx.x] = 0.0f;  // read behind the first barrier (AccInit::shifted)
  if constexpr (V.config.acc_init == AccInit::shifted) block_barrier();

  const TileItem item = T::item_of_block(args);
  const long long row = item.row, column = item.column, k = item.k_begin;
  const float* a = matrix_a<V>(args, item.batch) + (V.op_a == Op::N ? row + k * args.lda : row * args.lda + k);
  const float* b = matrix_b<V>(args, item.batch) + (V.op_b == Op::N ? column * args.ldb + k : column + k * args.ldb);
  typename T::OperandA operand_a;
  typename T::OperandB operand_b;
  operand_a.init(a, args.lda, args.m - item.row, item.depth);
  operand_b.init(b, args.ldb, args.n - item.column, item.depth);

  float acc[T::kRows][T::kColumns];
  if constexpr (T::kStaged)
    t.run_staged(acc, operand_a, operand_b, item.depth);
  else
    t.run_async(acc, operand_a, operand_b, item.depth);
  t.finish(acc, block_target<V>(args, item), alpha_of<V>(args), args.use_tickets != 0,
           reinterpret_cast<unsigned*>(t.trailer()));
}

}  // namespace gemm
