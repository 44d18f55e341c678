// What persistent blocks compute, one item after the other.
//
//   items:   0 1 2 ... blocks-1 | blocks ... | ... whole_items-1 |  shared tiles: their stages of k, laid end to end, are
//   cut
//            one wave           | the next   |                   |  evenly   t0: [ block 0 | block 1 ]  t1: [ block 1 | ...
//
// Whole items are (tile, split) pairs over all matrices, in turn. Of the shared tiles (stream-k) each block gets one piece
// of the line of stages; a tile that lies in several pieces is a split tile whose parts are numbered by block, so the order
// of their sum is fixed. A block leaves at most two partial tiles: of the tile that its piece begins in, in slot [block] of
// the workspace, and of the one that it ends in, in slot [blocks + block].
//
// An item is one number, from which everything else is computed again where it is needed: what lives through the main loop
// takes registers from it. The line of stages is shorter than 2^31 (launch.cpp), so all of it is 32-bit arithmetic.
#pragma once

#include "kernels/device/epilogue.cuh"
#include "kernels/device/platform.cuh"

namespace gemm {

template <KernelVariant V>
struct Work {
  static constexpr int BM = V.config.BM, BN = V.config.BN, BK = V.config.BK;
  static constexpr int kQuads = BM * BN / 4;
  static constexpr int kEnd = -2147483647 - 1;

  const TileArgs& args;

  GEMM_DEVICE int blocks() const { return static_cast<int>(gridDim.x); }
  GEMM_DEVICE int block() const { return static_cast<int>(blockIdx.x); }
  GEMM_DEVICE int stages_of_k() const { return (args.k + BK - 1) / BK; }

  // The first `rest` pieces are one stage longer than the others.
  GEMM_DEVICE int piece_begin(int of_block) const {
    const int line = args.shared_tiles * stages_of_k();
    const int length = line / blocks(), rest = line - length * blocks();
    return of_block * length + min(of_block, rest);
  }
  GEMM_DEVICE int block_of(int stage) const {
    const int line = args.shared_tiles * stages_of_k();
    const int length = line / blocks(), rest = line - length * blocks();
    const int in_longer = rest * (length + 1);
    return stage < in_longer ? stage / (length + 1) : rest + (stage - in_longer) / length;
  }

  // Items as numbers: a whole item's own, or -1 minus the stage of the line that a part of a shared tile begins with.
  GEMM_DEVICE int first() const { return block() < args.whole_items ? block() : shared_from(piece_begin(block())); }
  GEMM_DEVICE int next(int number) const {
    if (number >= 0) {
      const int following = number + blocks();
      return following < args.whole_items ? following : shared_from(piece_begin(block()));
    }
    const int stage = -1 - number;
    return shared_from(stage + stages_from(stage));
  }
  GEMM_DEVICE int shared_from(int stage) const {
    return args.shared_tiles > 0 && stage < piece_begin(block() + 1) ? -1 - stage : kEnd;
  }
  // Stages of this block's piece that belong to the tile of `stage`, from there on.
  GEMM_DEVICE int stages_from(int stage) const {
    const int left_of_tile = stages_of_k() - stage % stages_of_k();
    return min(left_of_tile, piece_begin(block() + 1) - stage);
  }

  GEMM_DEVICE TileItem item_of(int number) const {
    TileItem item;
    if (number >= 0) {
      const int tile = quotient(number, args.split_k);
      place(tile, item);
      item.split = number - tile * args.split_k;
      item.k_begin = item.split * args.k_per_split;
      item.depth = min(args.k_per_split, args.k - item.k_begin);
    } else {
      const int stage = -1 - number, tile = stage / stages_of_k();
      place(args.whole_items + tile, item);
      item.split = block() - block_of(tile * stages_of_k());
      item.k_begin = (stage - tile * stages_of_k()) * BK;
      item.depth = min(stages_from(stage) * BK, args.k - item.k_begin);
    }
    return item;
  }

  GEMM_DEVICE void place(int tile_of_all, TileItem& item) const {
    const int tiles = args.tiles_m * args.tiles_n;
    item.batch = args.batch == 1 ? 0 : quotient(tile_of_all, tiles);
    item.tile = tile_of_all - item.batch * tiles;
    int tile_m, tile_n;
    tile_position(item.tile, args.tiles_m, args.tiles_n, args.raster_group, tile_m, tile_n);
    item.row = tile_m * BM, item.column = tile_n * BN;
  }

  GEMM_DEVICE TileTarget<V.epilogue> target_of(int number) const {
    const TileItem item = item_of(number);
    const long long tile = static_cast<long long>(item.batch) * args.tiles_m * args.tiles_n + item.tile;
    TileTarget<V.epilogue> target;
    target.out = output_of<V>(args, item.batch);
    target.row = item.row;
    target.column = item.column;
    target.split = item.split;
    target.first_partial = 0;
    if (number >= 0) {
      target.split_k = args.split_k;
      target.partials = reinterpret_cast<float4*>(args.workspace) + tile * args.split_k * kQuads;
      target.ticket = args.tickets + tile;
    } else {
      const int shared_tile = (-1 - number) / stages_of_k(), begin = shared_tile * stages_of_k();
      const int first_block = block() - item.split;
      target.split_k = block_of(begin + stages_of_k() - 1) - first_block + 1;
      target.partials = reinterpret_cast<float4*>(args.workspace) + static_cast<long long>(first_block) * kQuads;
      target.first_partial = piece_begin(first_block) < begin ? blocks() : 0;
      target.ticket = args.tickets + shared_tile;
    }
    return target;
  }
};

}  // namespace gemm
