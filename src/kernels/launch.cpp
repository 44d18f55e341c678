#include "kernels/launch.h"

#include <algorithm>
#include <limits>

namespace gemm {
namespace {

constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
constexpr int64_t kMaxGridYZ = 65535;  // CUDA's limit for blocks along y and z
// Tile rows that are walked together. 4 to 16 made no difference on an H200 (shared/PERFORMANCE.md); 8 keeps a working set
// of 8 x BM rows of A in L2 on smaller GPUs.
constexpr int kRasterGroup = 8;
constexpr int kReduceThreads = 256;
constexpr int kScaleThreads = 256;
constexpr unsigned kScaleBlocks = 1024;  // enough to saturate memory on any current GPU

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t tiles_of(const KernelConfig& config, const Problem& p) {
  return ceil_div(p.m, config.BM) * ceil_div(p.n, config.BN);
}

// Matrices in one launch: the grid's z extent and, with tickets, the length of the ticket buffer limit it.
int64_t batch_per_launch(const Choice& choice, const Problem& p) {
  int64_t limit = kMaxGridYZ;
  if (choice.split_k > 1) limit = std::min(limit, kMaxTickets / std::max<int64_t>(1, tiles_of(choice.config, p)));
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
  args.split_k = plan.choice.split_k;
  args.k_per_split = static_cast<int>(ceil_div(ceil_div(p.k, config.BK), args.split_k) * config.BK);
  args.wide_c = widest_vector(o.c, p.ldc, p.n, p.stride_c, p.batch) == 4;
  args.use_tickets = plan.choice.reduction == Reduction::ticket;
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

const char* to_string(Reduction reduction) { return reduction == Reduction::ticket ? "ticket" : "kernel"; }

bool from_string(const std::string& text, Reduction& reduction) {
  if (text != "ticket" && text != "kernel") return false;
  reduction = text == "ticket" ? Reduction::ticket : Reduction::kernel;
  return true;
}

std::string to_string(const Choice& choice) {
  std::string text = config_id(choice.config);
  if (choice.split_k > 1) text += "/split " + std::to_string(choice.split_k) + " " + to_string(choice.reduction);
  return text;
}

int widest_vector(const void* pointer, int64_t ld, int64_t columns, int64_t stride, int64_t batch) {
  const auto fits = [&](int64_t floats) {
    return reinterpret_cast<uintptr_t>(pointer) % (4 * static_cast<uintptr_t>(floats)) == 0 &&
           (columns <= 1 || ld % floats == 0) && (batch <= 1 || stride % floats == 0);
  };
  return fits(4) ? 4 : fits(2) ? 2 : 1;
}

KernelVariant variant_for(const KernelConfig& config, const Problem& p, const Operands& o) {
  KernelVariant v;
  v.config = config;
  v.op_a = p.op_a;
  v.op_b = p.op_b;
  v.vec_a = widest_vector(o.a, p.lda, p.columns_a(), p.stride_a, p.batch);
  v.vec_b = widest_vector(o.b, p.ldb, p.columns_b(), p.stride_b, p.batch);
  // Where rows are contiguous, no load may be cut by the last one (operand.cuh).
  if (p.op_a == Op::N)
    while (p.m % v.vec_a != 0) v.vec_a /= 2;
  if (p.op_b == Op::T)
    while (p.n % v.vec_b != 0) v.vec_b /= 2;
  // A transposing cp.async moves single floats whatever the alignment: one variant serves all.
  if (config.load == LoadPath::async_transpose) {
    if (v.layout_a().k_contiguous) v.vec_a = 1;
    if (v.layout_b().k_contiguous) v.vec_b = 1;
  }
  v.long_ld = needs_long_offsets(v.layout_a().k_contiguous ? config.BM : config.BK, p.lda) ||
              needs_long_offsets(v.layout_b().k_contiguous ? config.BN : config.BK, p.ldb);
  // So long leading dimensions are rare: one variant with single floats serves them.
  if (v.long_ld) v.vec_a = v.vec_b = 1;
  return v;
}

int effective_split(const KernelConfig& config, const Problem& p, int split_k) {
  const int64_t blocks = std::max<int64_t>(1, ceil_div(p.k, config.BK));
  const int64_t split = std::clamp<int64_t>(split_k, 1, std::min(blocks, kMaxGridYZ));
  return static_cast<int>(ceil_div(blocks, ceil_div(blocks, split)));
}

int64_t workspace_bytes(const Choice& choice, const Problem& p) {
  const int split = effective_split(choice.config, p, choice.split_k);
  if (split == 1 || p.empty()) return 0;
  return batch_per_launch(choice, p) * tiles_of(choice.config, p) * split * choice.config.BM * choice.config.BN * 4;
}

std::string why_illegal(const Choice& choice, const Problem& p, const DeviceLimits& limits, int64_t workspace_available) {
  if (const char* why = why_invalid(choice.config, limits)) return why;
  if (choice.split_k < 1 || choice.split_k > kMaxGridYZ) return "split_k must lie between 1 and 65535";
  // The kernel counts in 32 bits and rounds up to whole tiles.
  const int64_t limit = kMaxInt - 1024;
  if (p.m > limit || p.n > limit || p.k > limit || tiles_of(choice.config, p) > kMaxInt)
    return "a dimension does not fit 32 bits";
  if (effective_split(choice.config, p, choice.split_k) == 1) return {};
  if (tiles_of(choice.config, p) > kMaxTickets) return "too many tiles to split k";
  const int64_t bytes = workspace_bytes(choice, p);
  if (bytes > workspace_available)
    return "needs " + std::to_string(bytes) + " bytes of workspace, " + std::to_string(workspace_available) +
           " are available";
  return {};
}

Result<TilePlan> build_plan(Device& device, const Choice& choice, const Problem& problem, const Operands& operands) {
  TilePlan plan;
  plan.choice = choice;
  plan.choice.split_k = effective_split(choice.config, problem, choice.split_k);
  plan.variant = variant_for(choice.config, problem, operands);
  Result<std::shared_ptr<Kernel>> tile = device.build(tile_spec(plan.variant));
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
  TileArgs args = tile_args(plan, problem, operands);
  args.workspace = workspace;
  args.tickets = tickets;
  const KernelConfig& config = plan.choice.config;
  const unsigned tiles = static_cast<unsigned>(args.tiles_m) * static_cast<unsigned>(args.tiles_n);
  const int64_t chunk = batch_per_launch(plan.choice, problem);
  for (int64_t first = 0; first < problem.batch; first += chunk) {
    args.a = operands.a + first * problem.stride_a;
    args.b = operands.b + first * problem.stride_b;
    args.c = operands.c + first * problem.stride_c;
    const unsigned batch = static_cast<unsigned>(std::min(chunk, problem.batch - first));
    const Grid grid{tiles, static_cast<unsigned>(args.split_k), batch};
    Result<bool> launched =
        device.launch(*plan.tile, grid, config.threads(), plan.variant.shared_bytes(), &args, sizeof args, stream);
    if (!launched) return launched;
    if (!plan.reduce) continue;
    const ReduceArgs reduce = reduce_args(args, config);
    const auto blocks = static_cast<unsigned>(ceil_div(config.BM * config.BN / 4, kReduceThreads));
    launched = device.launch(*plan.reduce, {tiles, blocks, batch}, kReduceThreads, 0, &reduce, sizeof reduce, stream);
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
