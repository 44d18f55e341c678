// A choice bound to a problem, and its launches. What depends on the problem only is computed once, in bind_problem; a call
// fills in its pointers and scalars.
#include <algorithm>

#include "kernels/launch.h"
#include "kernels/launch_arithmetic.h"

namespace gemm {
namespace {

// Tile rows that are walked together. 4 to 16 made no difference on an H200; 8 keeps a working set
// of 8 x BM rows of A in L2 on smaller GPUs.
constexpr int kRasterGroup = 8;
constexpr int kReduceThreads = 256;
constexpr int kScaleThreads = 256;
constexpr unsigned kScaleBlocks = 1024;  // enough to saturate memory on any current GPU

// Stands in for operands that are not known yet, which prepare and explain allow: each launch moves its maps, and no driver
// looks at what is there.
constexpr uintptr_t kAnyAddress = 1 << 20;

bool allows_quads(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

// ---------------------------------------------------------------------------------------------------- once per problem

TileArgs args_of_problem(const Choice& choice, const Problem& p) {
  const KernelConfig& config = choice.config;
  TileArgs args{};
  args.lda = p.lda, args.ldb = p.ldb, args.ldc = p.ldc;
  args.stride_a = p.stride_a, args.stride_b = p.stride_b, args.stride_c = p.stride_c;
  args.m = static_cast<int>(p.m), args.n = static_cast<int>(p.n), args.k = static_cast<int>(p.k);
  args.tiles_m = static_cast<int>(ceil_div(p.m, config.BM));
  args.tiles_n = static_cast<int>(ceil_div(p.n, config.BN));
  args.raster_group = kRasterGroup;
  args.split_k = split_of(choice);
  args.k_per_split = static_cast<int>(ceil_div(ceil_div(p.k, config.BK), args.split_k) * config.BK);
  args.wide_c = widest_vector(nullptr, p.ldc, p.n, p.stride_c, p.batch) == 4;
  args.use_tickets = choice.reduction != Reduction::kernel;
  return args;
}

LaunchShape shape_of(const TilePlan& plan, const Problem& problem, int64_t matrices, int sm_count) {
  const KernelConfig& config = plan.variant.config;
  const TileArgs& tile = plan.args.tile;
  LaunchShape shape;
  shape.grid = {static_cast<unsigned>(tile.tiles_m) * static_cast<unsigned>(tile.tiles_n),
                static_cast<unsigned>(tile.split_k), static_cast<unsigned>(matrices)};
  if (plan.variant.cluster) shape.grid.cluster_y = shape.grid.y;
  if (config.family == Family::batch)
    shape.grid = {static_cast<unsigned>(ceil_div(matrices, matrices_per_block(config))), 1, 1};
  if (is_persistent(config)) {
    Problem part = problem;
    part.batch = matrices;
    const PersistentGrid persistent = persistent_grid(plan.choice, part, sm_count);
    shape.grid = {static_cast<unsigned>(persistent.blocks), 1, 1};
    // While the predecessor still holds its places, the blocks would be dealt out unevenly, and each of them has much to do.
    shape.grid.overlaps_predecessor = persistent.blocks <= sm_count || persistent.blocks == sm_count * config.min_blocks;
    shape.whole_items = persistent.whole_items;
    shape.shared_tiles = persistent.shared_tiles;
  }
  return shape;
}

// Whether the tensor copy engine copies the operand.
bool has_map_a(const KernelVariant& v) { return has_barrier_ring(v.config.load) && v.vec_a == 4; }
bool has_map_b(const KernelVariant& v) { return has_barrier_ring(v.config.load) && v.vec_b == 4; }

// The map of an operand for the boxes that a stage consists of.
TensorMapSpec map_spec(const KernelVariant& v, const OperandLayout& layout, const float* data, int64_t rows, int64_t k,
                       int64_t ld, int64_t stride, int64_t batch) {
  TensorMapSpec spec;
  spec.data = data ? data : reinterpret_cast<const float*>(kAnyAddress);
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

Result<bool> encode_map(Device& device, TensorMap& map, const TensorMapSpec& spec) {
  Result<TensorMap> encoded = device.encode_tensor_map(spec);
  if (!encoded) return Failure{encoded.error()};
  map = *encoded;
  return true;
}

// ------------------------------------------------------------------------------------------------------- in every call

void set_pointers(TileArgs& args, const Operands& o) {
  const Indirection& indirect = o.indirect;
  if (indirect.scalars) {
    args.alpha_pointer = indirect.alpha;
    args.beta_pointer = indirect.beta;
  }
  if (indirect.arrays) {
    args.a_array = indirect.a;
    args.b_array = indirect.b;
    args.c_array = indirect.c;
  }
}

// Moves the matrices on to number `first` of the batch.
void move_to_matrix(TileArgs& args, const Problem& problem, const Operands& o, int64_t first) {
  args.a = o.a + first * problem.stride_a;
  args.b = o.b + first * problem.stride_b;
  args.c = o.c + first * problem.stride_c;
  args.bias.data = o.bias.data + first * o.bias.stride;
  if (!o.indirect.arrays) return;
  args.a_array = o.indirect.a + first;
  args.b_array = o.indirect.b + first;
  args.c_array = o.indirect.c + first;
}

Result<bool> launch_reduction(Device& device, const TilePlan& plan, const TileArgs& t, Stream stream) {
  const KernelConfig& config = plan.choice.config;
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
  args.alpha_pointer = t.alpha_pointer, args.beta_pointer = t.beta_pointer;
  args.c_array = t.c_array;
  args.bias = t.bias;
  const Grid grid{static_cast<unsigned>(t.tiles_m) * static_cast<unsigned>(t.tiles_n), plan.reduce_grid_y,
                  static_cast<unsigned>(t.batch)};
  return device.launch(*plan.reduce, grid, kReduceThreads, 0, &args, sizeof args, stream);
}

// What one call launches: the arguments of its kernel, of which `tile` is the beginning.
struct Call {
  Device& device;
  const TilePlan& plan;
  const Problem& problem;
  const Operands& operands;
  Stream stream;
};

Result<bool> launch_matrices(const Call& call, TileArgs& tile, const LaunchShape& shape, const void* args, size_t bytes) {
  const TilePlan& plan = call.plan;
  tile.whole_items = shape.whole_items;
  tile.shared_tiles = shape.shared_tiles;
  Result<bool> launched = call.device.launch(*plan.tile, shape.grid, plan.variant.config.threads(),
                                             static_cast<int>(plan.shared_bytes), args, bytes, call.stream);
  if (!launched || !plan.reduce) return launched;
  return launch_reduction(call.device, plan, tile, call.stream);
}

// Calls launch(matrices) for each part of the batch that fits one launch, with the arguments moved there.
template <class Launch>
Result<bool> for_each_part(const Call& call, TileArgs& tile, const Launch& launch) {
  const int64_t batch = call.problem.batch, part = call.plan.matrices;
  for (int64_t first = 0; first < batch; first += part) {
    if (first > 0) move_to_matrix(tile, call.problem, call.operands, first);
    const int64_t matrices = std::min(part, batch - first);
    tile.batch = static_cast<int>(matrices);
    Result<bool> launched = matrices == part
                                ? launch(call.plan.shape)
                                : launch(shape_of(call.plan, call.problem, matrices, call.device.info().sm_count));
    if (!launched) return launched;
  }
  return true;
}

void fill(TileArgs& args, const Operands& o, float* workspace, unsigned* tickets) {
  args.a = o.a, args.b = o.b, args.c = o.c;
  args.alpha = o.alpha, args.beta = o.beta;
  args.wide_c = args.wide_c != 0 && allows_quads(o.c);
  args.workspace = workspace;
  args.tickets = tickets;
  args.bias = o.bias;
  if (o.indirect.any()) set_pointers(args, o);
}

}  // namespace

Result<bool> bind_problem(Device& device, TilePlan& plan, const Problem& p, const Operands& o) {
  const KernelVariant& v = plan.variant;
  plan.args.tile = args_of_problem(plan.choice, p);
  plan.matrices = batch_per_launch(plan.choice, p);
  plan.shape = shape_of(plan, p, plan.matrices, device.info().sm_count);
  plan.shared_bytes = static_cast<unsigned>(shared_bytes(v));
  plan.reduce_grid_y = static_cast<unsigned>(ceil_div(int64_t{v.config.BM} * v.config.BN / 4, kReduceThreads));
  if (has_map_a(v)) {
    Result<bool> done =
        encode_map(device, plan.args.map_a, map_spec(v, layout_a(v), o.a, p.m, p.k, p.lda, p.stride_a, p.batch));
    if (!done) return done;
  }
  if (has_map_b(v))
    return encode_map(device, plan.args.map_b, map_spec(v, layout_b(v), o.b, p.n, p.k, p.ldb, p.stride_b, p.batch));
  return true;
}

namespace {

KernelSpec reduce_spec_for(const KernelVariant& v) {
  if (v.epilogue != Epilogue::none) return reduce_with_spec(v.epilogue);
  return v.indirect ? reduce_indirect_spec() : reduce_spec();
}

Result<TilePlan> build_product(Device& device, const Choice& choice, const Problem& problem, const Operands& operands) {
  TilePlan plan;
  plan.choice = choice;
  plan.choice.split_k = effective_split(choice.config, problem, choice.split_k);
  plan.variant = variant_of(choice, problem, operands);
  if (const Result<bool> bound = bind_problem(device, plan, problem, operands); !bound) return Failure{bound.error()};
  Result<std::shared_ptr<Kernel>> tile = device.build(variant_spec(plan.variant));
  if (!tile) return Failure{tile.error()};
  plan.tile = *tile;
  if (plan.choice.split_k > 1 && choice.reduction == Reduction::kernel) {
    Result<std::shared_ptr<Kernel>> reduce = device.build(reduce_spec_for(plan.variant));
    if (!reduce) return Failure{reduce.error()};
    plan.reduce = *reduce;
  }
  return plan;
}

// The panels share the first one's kernels.
Result<TilePlan> build_relaid(Device& device, const Choice& choice, const Problem& problem, const Operands& operands) {
  const auto relaid = std::make_shared<RelaidPlan>();
  relaid->product = relaid_product(choice.relayout, problem);
  Operands copies = operands;
  if (copies_a(choice.relayout)) copies.a = nullptr;
  if (copies_b(choice.relayout)) copies.b = nullptr;
  Result<TilePlan> plan = build_product(device, without_relayout(choice), relaid->product.panel, copies);
  if (!plan) return plan;
  relaid->last = *plan;
  if (const Result<bool> bound = bind_problem(device, relaid->last, relaid->product.last, copies); !bound)
    return Failure{bound.error()};
  Result<std::shared_ptr<Kernel>> copy = device.build(relayout_spec());
  if (!copy) return Failure{copy.error()};
  relaid->copy = *copy;
  plan->choice.relayout = choice.relayout;
  plan->relaid = relaid;
  return plan;
}

Result<bool> launch_product(Device& device, const TilePlan& plan, const Problem& problem, const Operands& operands,
                            float* workspace, unsigned* tickets, Stream stream) {
  const Call call{device, plan, problem, operands, stream};
  // Only kernels that use tensor maps get, and copy, the larger arguments.
  if (!has_barrier_ring(plan.variant.config.load)) {
    TileArgs args = plan.args.tile;
    fill(args, operands, workspace, tickets);
    return for_each_part(call, args,
                         [&](const LaunchShape& shape) { return launch_matrices(call, args, shape, &args, sizeof args); });
  }
  TmaTileArgs args = plan.args;
  fill(args.tile, operands, workspace, tickets);
  return for_each_part(call, args.tile, [&](const LaunchShape& shape) {
    if (has_map_a(plan.variant)) device.move_tensor_map(args.map_a, args.tile.a);
    if (has_map_b(plan.variant)) device.move_tensor_map(args.map_b, args.tile.b);
    return launch_matrices(call, args.tile, shape, &args, sizeof args);
  });
}

Result<bool> launch_copies(Device& device, const Kernel& copy, const RelayoutArgs& args, Stream stream) {
  const Grid grid{static_cast<unsigned>(args.a.tiles + args.b.tiles),
                  static_cast<unsigned>(std::max(args.a.matrices, args.b.matrices)), 1};
  return device.launch(copy, grid, kRelayoutThreads, kRelayoutSharedBytes, &args, sizeof args, stream);
}

Result<bool> launch_relaid(Device& device, const TilePlan& plan, const Problem& problem, const Operands& o, float* workspace,
                           unsigned* tickets, Stream stream) {
  const RelaidPlan& relaid = *plan.relaid;
  const RelaidProduct& product = relaid.product;
  const Relayout relayout = plan.choice.relayout;
  float* const copy_a = workspace;
  float* const copy_b = workspace + product.copy_bytes_a / 4;
  float* const partials = workspace + product.copy_bytes() / 4;
  for (int64_t number = 0; number < product.panels; ++number) {
    const RelayoutArgs copies = copies_of_panel(relayout, problem, product, number, o.a, o.b, workspace);
    Result<bool> launched = launch_copies(device, *relaid.copy, copies, stream);
    if (!launched) return launched;
    const bool is_last = number == product.panels - 1;
    Operands part = o;
    part.a = copies_a(relayout) ? copy_a : o.a;
    part.b = copies_b(relayout) ? copy_b : o.b;
    part.c = o.c + product.first_row(number) + product.first_column(number) * problem.ldc;
    if (part.bias.data) part.bias.data += product.first_row(number);
    launched = launch_product(device, is_last ? relaid.last : plan, is_last ? product.last : product.panel, part, partials,
                              tickets, stream);
    if (!launched) return launched;
  }
  return true;
}

}  // namespace

Result<TilePlan> build_plan(Device& device, const Choice& choice, const Problem& problem, const Operands& operands) {
  // Whether A and B are read at all is for a kernel to say where alpha lies on the GPU, and arrays of pointers have no
  // layout.
  if (choice.relayout == Relayout::none || operands.indirect.any())
    return build_product(device, without_relayout(choice), problem, operands);
  return build_relaid(device, choice, problem, operands);
}

Result<bool> launch_plan(Device& device, const TilePlan& plan, const Problem& problem, const Operands& operands,
                         float* workspace, unsigned* tickets, Stream stream) {
  return (plan.relaid ? launch_relaid : launch_product)(device, plan, problem, operands, workspace, tickets, stream);
}

KernelSpec scale_spec_for(const Operands& operands) {
  if (operands.epilogue != Epilogue::none) return scale_with_spec(operands.epilogue);
  return operands.indirect.any() ? scale_indirect_spec() : scale_spec();
}

Result<bool> launch_scale(Device& device, const Kernel& scale, const Problem& p, const Operands& o, Stream stream) {
  // m x n may exceed 32 bits but m, n and batch may not; larger batches go in pieces.
  for (int64_t first = 0; first < p.batch; first += kMaxInt) {
    ScaleArgs args{};
    args.c = o.c + first * p.stride_c;
    args.ldc = p.ldc, args.stride_c = p.stride_c;
    args.m = static_cast<int>(p.m), args.n = static_cast<int>(p.n);
    args.batch = static_cast<int>(std::min(kMaxInt, p.batch - first));
    args.beta = o.beta;
    args.bias = {o.bias.data + first * o.bias.stride, o.bias.stride};
    if (o.indirect.scalars) args.beta_pointer = o.indirect.beta;
    if (o.indirect.arrays) args.c_array = o.indirect.c + first;
    const int64_t elements = p.m * p.n * args.batch;
    const auto blocks = static_cast<unsigned>(std::min<int64_t>(kScaleBlocks, ceil_div(elements, kScaleThreads)));
    Result<bool> launched = device.launch(scale, {blocks, 1, 1}, kScaleThreads, 0, &args, sizeof args, stream);
    if (!launched) return launched;
  }
  return true;
}

}  // namespace gemm
