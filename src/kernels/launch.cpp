#include "kernels/launch.h"

#include <algorithm>
#include <limits>

namespace gemm {
namespace {

constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
constexpr int64_t kMaxItems = kMaxInt - (1 << 20);  // of persistent blocks, which count on past the last one
constexpr int64_t kMaxGridYZ = 65535;               // CUDA's limit for blocks along y and z
// Tile rows that are walked together. 4 to 16 made no difference on an H200 (shared/PERFORMANCE.md); 8 keeps a working set
// of 8 x BM rows of A in L2 on smaller GPUs.
constexpr int kRasterGroup = 8;
// Stages of k that one block of a stream-k tile gets at least; a partial tile costs about as much as four stages.
constexpr int64_t kLeastSharedSteps = 4;
constexpr int kReduceThreads = 256;
constexpr int kScaleThreads = 256;
constexpr unsigned kScaleBlocks = 1024;  // enough to saturate memory on any current GPU

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t tiles_of(const KernelConfig& config, const Problem& p) {
  return ceil_div(p.m, config.BM) * ceil_div(p.n, config.BN);
}

// Stream-k shares k by itself.
int split_of(const Choice& choice) { return choice.reduction == Reduction::stream_k ? 1 : choice.split_k; }

bool is_persistent(const KernelConfig& config) { return is_specialized(config.load); }

// Matrices in one launch: the grid's z extent, 32-bit item numbers and, with tickets, the length of the ticket buffer limit
// it.
int64_t batch_per_launch(const Choice& choice, const Problem& p) {
  int64_t limit = kMaxGridYZ;
  if (choice.config.family == Family::batch) limit = kMaxInt;
  if (is_persistent(choice.config))
    limit = kMaxItems / std::max<int64_t>(1, tiles_of(choice.config, p) * std::max(1, choice.split_k));
  if (choice.split_k > 1 && choice.reduction != Reduction::cluster)
    limit = std::min(limit, kMaxTickets / std::max<int64_t>(1, tiles_of(choice.config, p)));
  return std::clamp<int64_t>(p.batch, 1, std::max<int64_t>(1, limit));
}

// True when byte offsets inside a tile do not fit 32 bits: `lines` lines of `ld` floats.
bool needs_long_offsets(int lines, int64_t ld) { return (static_cast<int64_t>(lines) * ld + 1024) * 4 > 0xffffffffll; }

TileArgs tile_args(const TilePlan& plan, const Problem& p, const Operands& o) {
  const KernelConfig& config = plan.choice.config;
  TileArgs args{};
  args.a = o.a, args.b = o.b, args.c = o.c;
  args.lda = p.lda, args.ldb = p.ldb, args.ldc = p.ldc;
  args.stride_a = p.stride_a, args.stride_b = p.stride_b, args.stride_c = p.stride_c;
  args.m = static_cast<int>(p.m), args.n = static_cast<int>(p.n), args.k = static_cast<int>(p.k);
  args.tiles_m = static_cast<int>(ceil_div(p.m, config.BM));
  args.tiles_n = static_cast<int>(ceil_div(p.n, config.BN));
  args.raster_group = kRasterGroup;
  args.split_k = split_of(plan.choice);
  args.k_per_split = static_cast<int>(ceil_div(ceil_div(p.k, config.BK), args.split_k) * config.BK);
  args.wide_c = widest_vector(o.c, p.ldc, p.n, p.stride_c, p.batch) == 4;
  args.use_tickets = plan.choice.reduction != Reduction::kernel;
  args.alpha = o.alpha, args.beta = o.beta;
  return args;
}

ReduceArgs reduce_args(const TileArgs& t, const KernelConfig& config) {
  ReduceArgs args{};
  args.workspace = t.workspace;
  args.c = t.c;
  args.ldc = t.ldc, args.stride_c = t.stride_c;
  args.m = t.m, args.n = t.n;
  args.tiles_m = t.tiles_m, args.tiles_n = t.tiles_n, args.raster_group = t.raster_group;
  args.BM = config.BM, args.BN = config.BN;
  args.split_k = t.split_k;
  args.wide_c = t.wide_c;
  args.beta = t.beta;
  return args;
}

}  // namespace

const char* to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::kernel: return "kernel";
    case Reduction::stream_k: return "stream_k";
    case Reduction::cluster: return "cluster";
    default: return "ticket";
  }
}

bool from_string(const std::string& text, Reduction& reduction) {
  for (const Reduction candidate : {Reduction::ticket, Reduction::kernel, Reduction::stream_k, Reduction::cluster})
    if (text == to_string(candidate)) {
      reduction = candidate;
      return true;
    }
  return false;
}

std::string to_string(const Choice& choice) {
  std::string text = config_id(choice.config);
  if (choice.split_k > 1) text += "/split " + std::to_string(choice.split_k) + " " + to_string(choice.reduction);
  if (choice.reduction == Reduction::stream_k) text += "/stream_k";
  return text;
}

int widest_vector(const void* pointer, int64_t ld, int64_t columns, int64_t stride, int64_t batch) {
  const auto fits = [&](int64_t floats) {
    return reinterpret_cast<uintptr_t>(pointer) % (4 * static_cast<uintptr_t>(floats)) == 0 &&
           (columns <= 1 || ld % floats == 0) && (batch <= 1 || stride % floats == 0);
  };
  return fits(4) ? 4 : fits(2) ? 2 : 1;
}

PersistentGrid persistent_grid(const Choice& choice, const Problem& p, int sm_count) {
  const int64_t matrices = batch_per_launch(choice, p);
  const int64_t items = tiles_of(choice.config, p) * split_of(choice) * matrices;
  const int64_t most = static_cast<int64_t>(sm_count) * choice.config.min_blocks;
  PersistentGrid grid;
  grid.blocks = static_cast<int>(std::min(most, items));
  grid.whole_items = static_cast<int>(items);
  if (choice.reduction != Reduction::stream_k || items % most == 0) return grid;
  // The last full wave is shared as well: then no block gets less than a whole tile's work, and most tiles stay whole.
  grid.whole_items = static_cast<int>(std::max<int64_t>(0, items / most - 1) * most);
  grid.shared_tiles = static_cast<int>(items) - grid.whole_items;
  const int64_t steps = grid.shared_tiles * ceil_div(p.k, choice.config.BK);
  grid.blocks = static_cast<int>(grid.whole_items > 0 ? most : std::clamp<int64_t>(steps / kLeastSharedSteps, 1, most));
  return grid;
}

namespace {

// Loads as wide as alignment allows, whatever the sizes.
KernelVariant aligned_variant(const KernelConfig& config, const Problem& p, const Operands& o) {
  KernelVariant v;
  v.config = config;
  v.op_a = p.op_a;
  v.op_b = p.op_b;
  v.vec_a = widest_vector(o.a, p.lda, p.columns_a(), p.stride_a, p.batch);
  v.vec_b = widest_vector(o.b, p.ldb, p.columns_b(), p.stride_b, p.batch);
  return v;
}

// The tensor copy engine needs 16-byte alignment and cuts boxes at the edges by itself. Copying warps move single floats of
// what is not aligned, or has to be transposed.
KernelVariant specialized_variant(KernelVariant v) {
  const auto vec_of = [&](bool along_k, int vec) { return vec == 4 && (!along_k || stays_along_k(v.config, vec)) ? 4 : 1; };
  v.vec_a = vec_of(v.a_along_k(), v.vec_a);
  v.vec_b = vec_of(v.b_along_k(), v.vec_b);
  return v;
}

KernelVariant copied_variant(KernelVariant v, const Problem& p) {
  // Where rows are contiguous, no load may be cut by the last one (operand.cuh).
  if (!v.a_along_k())
    while (p.m % v.vec_a != 0) v.vec_a /= 2;
  if (!v.b_along_k())
    while (p.n % v.vec_b != 0) v.vec_b /= 2;
  if (v.config.family != Family::tile) {
    // Memory-bound kernels: what is not aligned to 16 bytes is rare enough for one variant with single floats.
    if (v.vec_a < 4) v.vec_a = 1;
    if (v.vec_b < 4) v.vec_b = 1;
    return v;
  }
  // A transposing cp.async moves single floats whatever the alignment: one variant serves all.
  if (v.config.load == LoadPath::async_transpose) {
    if (v.a_along_k()) v.vec_a = 1;
    if (v.b_along_k()) v.vec_b = 1;
  }
  v.long_ld = needs_long_offsets(v.a_along_k() ? v.config.BM : v.config.BK, p.lda) ||
              needs_long_offsets(v.b_along_k() ? v.config.BN : v.config.BK, p.ldb);
  // So long leading dimensions are rare: one variant with single floats serves them.
  if (v.long_ld) v.vec_a = v.vec_b = 1;
  return v;
}

}  // namespace

KernelVariant variant_for(const KernelConfig& config, const Problem& p, const Operands& o) {
  KernelVariant v = aligned_variant(config, p, o);
  if (is_specialized(config.load)) return specialized_variant(v);
  if (config.load == LoadPath::tma) {
    if (v.vec_a == 4 && v.vec_b == 4) return v;
    v.config.load = LoadPath::async;  // valid as well, says why_invalid
  }
  return copied_variant(v, p);
}

KernelVariant variant_of(const Choice& choice, const Problem& p, const Operands& o) {
  KernelVariant v = variant_for(choice.config, p, o);
  v.cluster = choice.reduction == Reduction::cluster;
  return v;
}

int effective_split(const KernelConfig& config, const Problem& p, int split_k) {
  const int64_t blocks = std::max<int64_t>(1, ceil_div(p.k, config.BK));
  const int64_t split = std::clamp<int64_t>(split_k, 1, std::min(blocks, kMaxGridYZ));
  return static_cast<int>(ceil_div(blocks, ceil_div(blocks, split)));
}

int64_t workspace_bytes(const Choice& choice, const Problem& p, int sm_count) {
  if (p.empty()) return 0;
  if (choice.reduction == Reduction::stream_k) {
    const PersistentGrid grid = persistent_grid(choice, p, sm_count);
    // The first and the last piece of a block's share.
    return grid.shared_tiles == 0 ? 0 : int64_t{2} * grid.blocks * choice.config.BM * choice.config.BN * 4;
  }
  const int split = effective_split(choice.config, p, choice.split_k);
  if (split == 1 || choice.reduction == Reduction::cluster) return 0;
  return batch_per_launch(choice, p) * tiles_of(choice.config, p) * split * choice.config.BM * choice.config.BN * 4;
}

namespace {

// Persistent blocks number their items, and the stages that they share, in 32 bits.
const char* why_persistent_illegal(const Choice& choice, const Problem& p, const DeviceInfo& device) {
  if (!is_persistent(choice.config) || p.empty()) return nullptr;
  if (tiles_of(choice.config, p) * choice.split_k > kMaxItems) return "too many tiles to number in 32 bits";
  const PersistentGrid grid = persistent_grid(choice, p, device.sm_count);
  if (grid.shared_tiles * ceil_div(p.k, choice.config.BK) > kMaxInt) return "k is too long to share by stream_k";
  return nullptr;
}

const char* why_cluster_illegal(const Choice& choice, const Problem& p, const DeviceLimits& limits) {
  if (choice.reduction != Reduction::cluster) return nullptr;
  if (!can_cluster(choice.config)) return "cluster needs the tile family and another load path than warp_specialized";
  if (limits.compute_capability < 90) return "cluster needs sm_90 or newer";
  if (choice.split_k < 2 || choice.split_k > kMostPerCluster) return "cluster needs split_k 2 to 8";
  if (shared_bytes(variant_of(choice, p, {})) > limits.shared_bytes_per_block)
    return "the partial tile needs more shared memory than a block can have";
  return nullptr;
}

}  // namespace

std::string why_illegal(const Choice& choice, const Problem& p, const DeviceInfo& device, int64_t workspace_available) {
  if (const char* why = why_invalid(choice.config, device.limits)) return why;
  if (choice.reduction == Reduction::stream_k && (!is_persistent(choice.config) || choice.split_k != 1))
    return "stream_k needs persistent blocks (load warp_specialized) and split_k 1";
  if (const char* why = why_cluster_illegal(choice, p, device.limits)) return why;
  if (choice.config.family == Family::batch) {
    if (choice.split_k != 1) return "the batch family does not split k";
    if (p.m > choice.config.BM || p.n > choice.config.BN) return "the batch family needs m <= BM and n <= BN";
  }
  if (choice.split_k < 1 || choice.split_k > kMaxGridYZ) return "split_k must lie between 1 and 65535";
  // The kernel counts in 32 bits and rounds up to whole tiles.
  const int64_t limit = kMaxInt - 1024;
  if (p.m > limit || p.n > limit || p.k > limit || tiles_of(choice.config, p) > kMaxInt)
    return "a dimension does not fit 32 bits";
  if (const char* why = why_persistent_illegal(choice, p, device)) return why;
  const int64_t bytes = workspace_bytes(choice, p, device.sm_count);
  if (bytes == 0) return {};
  if (choice.split_k > 1 && tiles_of(choice.config, p) > kMaxTickets) return "too many tiles to split k";
  if (bytes > workspace_available)
    return "needs " + std::to_string(bytes) + " bytes of workspace, " + std::to_string(workspace_available) +
           " are available";
  return {};
}

namespace {

// Whether the tensor copy engine copies the operand.
bool has_map_a(const KernelVariant& v) { return has_barrier_ring(v.config.load) && v.vec_a == 4; }
bool has_map_b(const KernelVariant& v) { return has_barrier_ring(v.config.load) && v.vec_b == 4; }

// The map of an operand for the boxes that a stage consists of.
TensorMapSpec map_spec(const KernelVariant& v, const OperandLayout& layout, const float* data, int64_t rows, int64_t k,
                       int64_t ld, int64_t stride, int64_t batch) {
  TensorMapSpec spec;
  spec.data = data;
  spec.length = layout.k_contiguous ? k : rows;
  spec.lines = layout.k_contiguous ? rows : k;
  // A matrix that the whole batch shares is one matrix, of which the kernel takes number 0.
  spec.batch = stride == 0 ? 1 : batch;
  spec.ld = ld;
  spec.stride = stride;
  spec.box_length = layout.k_contiguous ? layout.ld : layout.rows;
  spec.box_lines = layout.k_contiguous ? layout.rows : v.config.BK;
  spec.swizzle_bytes = layout.k_contiguous ? layout.ld * 4 : 0;
  return spec;
}

}  // namespace

Result<bool> encode_maps(Device& device, TilePlan& plan, const Problem& p, const Operands& o) {
  const KernelVariant& v = plan.variant;
  if (!has_barrier_ring(v.config.load)) return true;
  const auto encode = [&](TensorMap& map, const TensorMapSpec& spec) -> Result<bool> {
    Result<TensorMap> encoded = device.encode_tensor_map(spec);
    if (!encoded) return Failure{encoded.error()};
    map = *encoded;
    return true;
  };
  if (has_map_a(v)) {
    Result<bool> done = encode(plan.map_a, map_spec(v, layout_a(v), o.a, p.m, p.k, p.lda, p.stride_a, p.batch));
    if (!done) return done;
  }
  if (has_map_b(v)) return encode(plan.map_b, map_spec(v, layout_b(v), o.b, p.n, p.k, p.ldb, p.stride_b, p.batch));
  return true;
}

namespace {

// One launch of the product itself, for the matrices that args names.
Result<bool> launch_chunk(Device& device, const TilePlan& plan, const Problem& problem, TmaTileArgs& args, Stream stream) {
  const KernelConfig& config = plan.variant.config;
  TileArgs& tile = args.tile;
  Grid grid{static_cast<unsigned>(tile.tiles_m) * static_cast<unsigned>(tile.tiles_n), static_cast<unsigned>(tile.split_k),
            static_cast<unsigned>(tile.batch)};
  if (plan.variant.cluster) grid.cluster_y = grid.y;
  const auto launch = [&](const void* data, size_t bytes) {
    return device.launch(*plan.tile, grid, config.threads(), shared_bytes(plan.variant), data, bytes, stream);
  };
  if (config.family == Family::batch) grid = {static_cast<unsigned>(ceil_div(tile.batch, matrices_per_block(config))), 1, 1};
  if (!has_barrier_ring(config.load)) return launch(&tile, sizeof tile);
  if (is_persistent(config)) {
    Problem chunk = problem;
    chunk.batch = tile.batch;
    const PersistentGrid persistent = persistent_grid(plan.choice, chunk, device.info().sm_count);
    tile.whole_items = persistent.whole_items;
    tile.shared_tiles = persistent.shared_tiles;
    grid = {static_cast<unsigned>(persistent.blocks), 1, 1};
    // While the predecessor still holds its places, the blocks would be dealt out unevenly, and each of them has much to do.
    const int sm_count = device.info().sm_count;
    grid.overlaps_predecessor = persistent.blocks <= sm_count || persistent.blocks == sm_count * config.min_blocks;
  }
  if (has_map_a(plan.variant)) device.move_tensor_map(args.map_a, tile.a);
  if (has_map_b(plan.variant)) device.move_tensor_map(args.map_b, tile.b);
  return launch(&args, sizeof args);
}

}  // namespace

Result<TilePlan> build_plan(Device& device, const Choice& choice, const Problem& problem, const Operands& operands) {
  TilePlan plan;
  plan.choice = choice;
  plan.choice.split_k = effective_split(choice.config, problem, choice.split_k);
  plan.variant = variant_of(choice, problem, operands);
  if (Result<bool> encoded = encode_maps(device, plan, problem, operands); !encoded) return Failure{encoded.error()};
  Result<std::shared_ptr<Kernel>> tile = device.build(variant_spec(plan.variant));
  if (!tile) return Failure{tile.error()};
  plan.tile = *tile;
  if (plan.choice.split_k > 1 && choice.reduction == Reduction::kernel) {
    Result<std::shared_ptr<Kernel>> reduce = device.build(reduce_spec());
    if (!reduce) return Failure{reduce.error()};
    plan.reduce = *reduce;
  }
  return plan;
}

Result<bool> launch_plan(Device& device, const TilePlan& plan, const Problem& problem, const Operands& operands,
                         float* workspace, unsigned* tickets, Stream stream) {
  TmaTileArgs args{tile_args(plan, problem, operands), plan.map_a, plan.map_b};
  TileArgs& tile = args.tile;
  tile.workspace = workspace;
  tile.tickets = tickets;
  const int64_t chunk = batch_per_launch(plan.choice, problem);
  for (int64_t first = 0; first < problem.batch; first += chunk) {
    tile.a = operands.a + first * problem.stride_a;
    tile.b = operands.b + first * problem.stride_b;
    tile.c = operands.c + first * problem.stride_c;
    tile.batch = static_cast<int>(std::min(chunk, problem.batch - first));
    Result<bool> launched = launch_chunk(device, plan, problem, args, stream);
    if (!launched) return launched;
    if (!plan.reduce) continue;
    const ReduceArgs reduce = reduce_args(tile, plan.choice.config);
    const auto blocks = static_cast<unsigned>(ceil_div(reduce.BM * reduce.BN / 4, kReduceThreads));
    const Grid grid{static_cast<unsigned>(tile.tiles_m) * static_cast<unsigned>(tile.tiles_n), blocks,
                    static_cast<unsigned>(tile.batch)};
    launched = device.launch(*plan.reduce, grid, kReduceThreads, 0, &reduce, sizeof reduce, stream);
    if (!launched) return launched;
  }
  return true;
}

Result<bool> launch_scale(Device& device, const Kernel& scale, const Problem& p, float* c, float beta, Stream stream) {
  // m x n may exceed 32 bits but m, n and batch may not; larger batches go in pieces.
  for (int64_t first = 0; first < p.batch; first += kMaxInt) {
    ScaleArgs args{};
    args.c = c + first * p.stride_c;
    args.ldc = p.ldc, args.stride_c = p.stride_c;
    args.m = static_cast<int>(p.m), args.n = static_cast<int>(p.n);
    args.batch = static_cast<int>(std::min(kMaxInt, p.batch - first));
    args.beta = beta;
    const int64_t elements = p.m * p.n * args.batch;
    const auto blocks = static_cast<unsigned>(std::min<int64_t>(kScaleBlocks, ceil_div(elements, kScaleThreads)));
    Result<bool> launched = device.launch(scale, {blocks, 1, 1}, kScaleThreads, 0, &args, sizeof args, stream);
    if (!launched) return launched;
  }
  return true;
}

}  // namespace gemm
