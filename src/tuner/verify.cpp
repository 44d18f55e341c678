#include "tuner/verify.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <vector>

#include "kernels/kernel_args.h"
#include "kernels/kernel_spec.h"
#include "tuner/candidates.h"

namespace gemm {
namespace {

constexpr uint32_t kSentinel = 0x7fc0dead;  // a NaN that no computation makes
constexpr int64_t kGuardWords = 256;        // before and behind an output; keeps its 16-byte alignment
constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 2048;  // of the grid-stride kernels
constexpr int64_t kReferenceTile = 16;
constexpr int kReferenceSharedBytes = 2 * 16 * 17 * 4;
constexpr int64_t kMaxBatchPerLaunch = 65535;
constexpr int64_t kSmallOperand = 4096;  // floats; such operands get NaN in every gap, larger ones only behind their end

Grid stride_grid(int64_t elements) {
  return {static_cast<unsigned>(std::clamp<int64_t>((elements + kThreads - 1) / kThreads, 1, kMostBlocks)), 1, 1};
}

int64_t results_of(const Problem& p) { return p.m * p.n * p.batch; }

// The smallest size or leading dimension from `size` on that consists of whole loads of `vec` floats.
int64_t round_up(int64_t size, int vec) { return (size + vec - 1) / vec * vec; }

// A pointer moved so that loads of exactly `vec` floats are the widest that it allows.
int64_t misalignment(int vec) { return vec == 4 ? 0 : vec; }

// Tails of k that take different paths: short ones, around the borders of the slices, and around BK.
bool is_telling_tail(const KernelConfig& c, int64_t k) {
  const int64_t slice = c.BK / c.slices;
  const int64_t in_slice = k % slice;
  return k <= 5 || k >= c.BK - 3 || (c.slices > 1 && (in_slice <= 1 || in_slice == slice - 1));
}

std::string describe(const Verdict& verdict, const Problem& problem, const Operands& operands, int split_k,
                     unsigned violations) {
  char text[160];
  if (violations != 0)
    std::snprintf(text, sizeof text, "wrote outside C (%u guard words changed)", violations);
  else
    std::snprintf(text, sizeof text, "wrong result: error is %.3g times the accepted bound", verdict.max_scaled_error);
  char scalars[80];
  std::snprintf(scalars, sizeof scalars, " with alpha %g, beta %g, split_k %d", static_cast<double>(operands.alpha),
                static_cast<double>(operands.beta), split_k);
  return std::string(text) + " on " + to_string(problem) + scalars;
}

}  // namespace

struct Verifier::EdgeCase {
  Problem problem;
  float alpha = 1, beta = 0;
  int split_k = 1;
};

Result<LaunchScratch> LaunchScratch::create(Device& device) {
  LaunchScratch scratch;
  for (auto [buffer, bytes] : {std::pair{&scratch.workspace, static_cast<size_t>(kWorkspaceBytes)},
                               std::pair{&scratch.tickets, kMaxTickets * sizeof(unsigned)}}) {
    Result<Buffer> allocated = device.allocate(bytes);
    if (!allocated) return Failure{allocated.error()};
    *buffer = *allocated;
  }
  device.set_words(scratch.tickets.as(), 0, kMaxTickets, nullptr);
  return scratch;
}

int64_t ReferenceProduct::bytes(const Problem& problem) {
  return 2 * results_of(problem) * static_cast<int64_t>(sizeof(double));
}

int64_t GuardedOutput::bytes(const Problem& problem) { return (problem.extent_c() + 2 * kGuardWords + 4) * 4; }

Result<std::unique_ptr<Verifier>> Verifier::create(Device& device) {
  std::unique_ptr<Verifier> verifier(new Verifier(device));
  for (auto [kernel, spec] : {std::pair{&verifier->fill_, fill_spec()}, std::pair{&verifier->reference_, reference_spec()},
                              std::pair{&verifier->compare_, compare_spec()}, std::pair{&verifier->guard_, guard_spec()}}) {
    Result<std::shared_ptr<Kernel>> built = device.build(spec);
    if (!built) return Failure{"cannot build the kernel that checks results, " + spec.name + ": " + built.error()};
    *kernel = *built;
  }
  Result<Buffer> results = device.allocate(2 * sizeof(unsigned));
  if (!results) return Failure{results.error()};
  verifier->results_ = *results;
  return verifier;
}

void Verifier::launch_check(const Kernel& kernel, Grid grid, int shared_bytes, const void* args, size_t args_bytes) {
  device_.launch(kernel, grid, kThreads, shared_bytes, args, args_bytes, nullptr).value_or_throw();
}

void Verifier::fill_random(float* data, int64_t count, unsigned seed) {
  if (count == 0) return;
  const FillArgs args{data, count, seed};
  launch_check(*fill_, stride_grid(count), 0, &args, sizeof args);
}

void Verifier::run_reference(const Problem& p, const float* a, const float* b, const ReferenceProduct& reference) {
  const int64_t tiles = (p.m + kReferenceTile - 1) / kReferenceTile * ((p.n + kReferenceTile - 1) / kReferenceTile);
  for (int64_t first = 0; first < p.batch; first += kMaxBatchPerLaunch) {
    ReferenceArgs args{};
    args.a = a + first * p.stride_a;
    args.b = b + first * p.stride_b;
    args.sum = reference.sum.as<double>() + first * p.m * p.n;
    args.magnitude = reference.magnitude.as<double>() + first * p.m * p.n;
    args.lda = p.lda, args.ldb = p.ldb, args.stride_a = p.stride_a, args.stride_b = p.stride_b;
    args.m = static_cast<int>(p.m), args.n = static_cast<int>(p.n), args.k = static_cast<int>(p.k);
    args.op_a_t = p.op_a == Op::T, args.op_b_t = p.op_b == Op::T;
    const auto batch = static_cast<unsigned>(std::min(kMaxBatchPerLaunch, p.batch - first));
    launch_check(*reference_, {static_cast<unsigned>(tiles), 1, batch}, kReferenceSharedBytes, &args, sizeof args);
  }
}

Result<ReferenceProduct> Verifier::reference(const Problem& problem, const float* a, const float* b) {
  ReferenceProduct product;
  for (Buffer* buffer : {&product.sum, &product.magnitude}) {
    Result<Buffer> allocated = device_.allocate(static_cast<size_t>(results_of(problem)) * sizeof(double));
    if (!allocated) return Failure{allocated.error()};
    *buffer = *allocated;
  }
  run_reference(problem, a, b, product);
  return product;
}

Result<GuardedOutput> Verifier::output(const Problem& problem) {
  Result<Buffer> allocation = device_.allocate(static_cast<size_t>(GuardedOutput::bytes(problem)));
  if (!allocation) return Failure{allocation.error()};
  return GuardedOutput{*allocation, kGuardWords, problem.extent_c() + 2 * kGuardWords};
}

void Verifier::count_violations(const unsigned* words, int64_t total, int64_t front, const Problem& p, unsigned sentinel) {
  GuardArgs args{};
  args.allocation = words;
  args.total = total, args.front = front;
  args.ldc = p.ldc, args.stride_c = p.stride_c;
  args.m = static_cast<int>(p.m), args.n = static_cast<int>(p.n), args.batch = static_cast<int>(p.batch);
  args.sentinel = sentinel;
  args.violations = results_.as<unsigned>() + 1;
  launch_check(*guard_, stride_grid(total), 0, &args, sizeof args);
}

// Runs the plan on poisoned scratch and compares; `output` is poisoned, or holds c_before where beta is not 0.
Verdict Verifier::run_and_compare(const TilePlan& plan, const Problem& p, const Operands& operands, const float* c_before,
                                  const ReferenceProduct& reference, const GuardedOutput& output,
                                  const LaunchScratch& scratch) {
  device_.set_words(results_.as(), 0, 2, nullptr);
  device_.set_words(scratch.tickets.as(), 0, kMaxTickets, nullptr);
  const int64_t partial_words = workspace_bytes(plan.choice, p, device_.info().sm_count) / 4;
  if (partial_words > 0) device_.set_words(scratch.workspace.as(), kSentinel, static_cast<size_t>(partial_words), nullptr);

  Verdict verdict;
  const Result<bool> launched =
      launch_plan(device_, plan, p, operands, scratch.workspace.as<float>(), scratch.tickets.as<unsigned>(), nullptr);
  if (!launched) {
    verdict.launch_refused = true;
    verdict.reason = "launch refused on " + to_string(p) + ": " + launched.error();
    return verdict;
  }
  CompareArgs args{};
  args.c = operands.c, args.c_before = c_before;
  args.sum = reference.sum.as<double>(), args.magnitude = reference.magnitude.as<double>();
  args.ldc = p.ldc, args.stride_c = p.stride_c;
  args.m = static_cast<int>(p.m), args.n = static_cast<int>(p.n), args.k = static_cast<int>(p.k);
  args.batch = static_cast<int>(p.batch);
  args.alpha = operands.alpha, args.beta = operands.beta;
  args.worst = results_.as<unsigned>();
  launch_check(*compare_, stride_grid(results_of(p)), 0, &args, sizeof args);
  count_violations(output.allocation.as<unsigned>(), output.words, output.front_words, p, kSentinel);
  // A ticket that is not zero again would break the next launch.
  if (partial_words > 0) count_violations(scratch.tickets.as<unsigned>(), kMaxTickets, 0, Problem{}, 0);
  device_.synchronize(nullptr);

  unsigned results[2] = {};
  device_.copy_to_host(results, results_.as(), sizeof results);
  verdict.max_scaled_error = static_cast<double>(std::bit_cast<float>(results[0]));
  if (!(verdict.max_scaled_error <= 1) || results[1] != 0)
    verdict.reason = describe(verdict, p, operands, plan.choice.split_k, results[1]);
  return verdict;
}

Verdict Verifier::check(const TilePlan& plan, const Problem& problem, const float* a, const float* b,
                        const ReferenceProduct& reference, const GuardedOutput& output, const LaunchScratch& scratch) {
  device_.set_words(output.allocation.as(), kSentinel, static_cast<size_t>(output.words), nullptr);
  return run_and_compare(plan, problem, {a, b, output.c(), 1, 0}, nullptr, reference, output, scratch);
}

// Problems around the tile's borders, laid out so that they run the very kernel that was compiled for this variant.
std::vector<Verifier::EdgeCase> Verifier::edge_cases(const KernelVariant& variant) {
  const KernelConfig& c = variant.config;
  std::vector<EdgeCase> cases;
  const auto add = [&](int64_t m, int64_t n, int64_t k, float alpha, float beta, int split_k = 1, int64_t batch = 1) {
    m = std::max<int64_t>(1, m), n = std::max<int64_t>(1, n);
    // One warp computes a whole matrix of the batch family.
    if (c.family == Family::batch) m = std::min<int64_t>(m, c.BM), n = std::min<int64_t>(n, c.BN), split_k = 1;
    // A variant that loads rows in pieces serves whole pieces only (variant_for).
    if (variant.op_a == Op::N) m = round_up(m, variant.vec_a);
    if (variant.op_b == Op::T) n = round_up(n, variant.vec_b);
    Problem p = packed_problem(m, n, k, variant.op_a, variant.op_b, batch);
    p.lda = round_up(p.rows_a(), variant.vec_a);
    p.ldb = round_up(p.rows_b(), variant.vec_b);
    p.ldc = m + (beta != 0 ? 3 : 0);
    p.stride_a = p.lda * p.columns_a();
    p.stride_b = p.ldb * p.columns_b();
    p.stride_c = p.ldc * n + (batch > 1 ? 5 : 0);
    cases.push_back({p, alpha, beta, split_k});
  };
  add(c.BM - 1, c.BN - 1, c.BK - 1, 1, 0);
  add(c.BM + 1, c.BN + 1, c.BK + 1, 0.75f, -0.5f);
  add(std::max(4, c.BM - 4), std::max(4, c.BN - 4), c.BK + 4, 1, 0);
  add(c.BM, c.BN, static_cast<int64_t>(c.stages) * c.BK + 1, 1, 0);
  add(1, c.BN + 1, 3 * c.BK + 2, 1, 1);
  add(c.BM + 1, 1, c.BK / 2 + 1, -1, 0);
  add(5, 3, 2 * c.BK + 3, 1, 2, 1, 3);
  add(c.BM + 1, c.BN - 1, 3 * c.BK + 3, 0.75f, 0, 3);
  add(7, 5, 5 * c.BK - 1, 1, -0.5f, 5);
  for (int64_t k = 1; k <= c.BK + 1; ++k)
    if (is_telling_tail(c, k)) add(7, 5, k, 1, 0);
  return cases;
}

// Random values in the operand, NaN behind it (and in its gaps where it is small): a kernel that lets them in is found.
float* Verifier::edge_operand(Buffer& buffer, int64_t rows, int64_t columns, int64_t ld, int64_t stride, int64_t batch,
                              int vec, unsigned seed) {
  const int64_t extent = (batch - 1) * stride + (columns - 1) * ld + rows;
  const int64_t offset = misalignment(vec);
  const int64_t words = offset + extent + kGuardWords;
  if (static_cast<int64_t>(buffer.bytes()) < words * 4)
    buffer = device_.allocate(static_cast<size_t>(words) * 4 * 2).value_or_throw();
  float* data = buffer.as<float>() + offset;
  if (extent > kSmallOperand) {
    device_.set_words(buffer.as(), kSentinel, static_cast<size_t>(words), nullptr);
    fill_random(data, extent, seed);
    return data;
  }
  std::vector<uint32_t> image(static_cast<size_t>(words), kSentinel);
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < batch; ++i)
    for (int64_t column = 0; column < columns; ++column)
      for (int64_t row = 0; row < rows; ++row) {
        state = state * 1664525u + 1013904223u;
        const float value = static_cast<float>(static_cast<int32_t>(state) >> 8) / static_cast<float>(1 << 23);
        image[static_cast<size_t>(offset + i * stride + column * ld + row)] = std::bit_cast<uint32_t>(value);
      }
  device_.copy_to_device(buffer.as(), image.data(), image.size() * 4);
  return data;
}

Verdict Verifier::check_edge(const TilePlan& tile_plan, const EdgeCase& edge, const LaunchScratch& scratch) {
  ++edge_runs_;
  const Problem& p = edge.problem;
  const unsigned seed = static_cast<unsigned>(edge_runs_) * 7919u;
  const KernelVariant& v = tile_plan.variant;
  Operands operands{nullptr, nullptr, nullptr, edge.alpha, edge.beta};
  operands.a = edge_operand(edge_a_, p.rows_a(), p.columns_a(), p.lda, p.stride_a, p.batch, v.vec_a, seed);
  operands.b = edge_operand(edge_b_, p.rows_b(), p.columns_b(), p.ldb, p.stride_b, p.batch, v.vec_b, seed + 1);

  if (static_cast<int64_t>(edge_reference_.sum.bytes()) * 2 < ReferenceProduct::bytes(p))
    edge_reference_ = reference(p, operands.a, operands.b).value_or_throw();
  else
    run_reference(p, operands.a, operands.b, edge_reference_);

  if (static_cast<int64_t>(edge_c_.allocation.bytes()) < GuardedOutput::bytes(p)) edge_c_ = output(p).value_or_throw();
  // C is moved by one float where the operands are misaligned, which takes its 16-byte path away too.
  edge_c_.front_words = kGuardWords + (v.vec_a == 4 && v.vec_b == 4 ? 0 : 1);
  edge_c_.words = p.extent_c() + 2 * kGuardWords;
  operands.c = edge_c_.c();
  device_.set_words(edge_c_.allocation.as(), kSentinel, static_cast<size_t>(edge_c_.words), nullptr);
  const float* c_before = nullptr;
  if (edge.beta != 0) {
    c_before = edge_operand(edge_c_before_, p.m, p.n, p.ldc, p.stride_c, p.batch, 4, seed + 2);
    std::vector<uint32_t> image(static_cast<size_t>(p.extent_c()));
    device_.copy_to_host(image.data(), c_before, image.size() * 4);
    for (int64_t i = 0; i < p.extent_c(); ++i)  // gaps hold the sentinel, as the guard check expects
      if (i % p.stride_c % p.ldc >= p.m || i % p.stride_c >= p.ldc * p.n) image[static_cast<size_t>(i)] = kSentinel;
    device_.copy_to_device(operands.c, image.data(), image.size() * 4);
  }

  // The kernel by itself; its copies of operands are checked on the problem.
  TilePlan plan = tile_plan;
  plan.relaid = nullptr;
  plan.choice.relayout = Relayout::none;
  // Stream-k shares k by itself.
  const int split = plan.choice.reduction == Reduction::stream_k ? 1 : edge.split_k;
  plan.choice.split_k = effective_split(plan.choice.config, p, split);
  plan.reduce = nullptr;
  bind_problem(device_, plan, p, operands).value_or_throw();
  if (plan.choice.split_k > 1 && plan.choice.reduction == Reduction::kernel)
    plan.reduce = device_.build(reduce_spec()).value_or_throw();
  return run_and_compare(plan, p, operands, c_before, edge_reference_, edge_c_, scratch);
}

Verdict Verifier::check_edges(const TilePlan& plan, const LaunchScratch& scratch) {
  const std::string name = variant_spec(plan.variant).name + to_string(plan.choice.reduction);
  if (edges_checked_.count(name) != 0) return {};
  Verdict worst;
  for (const EdgeCase& edge : edge_cases(plan.variant)) {
    Verdict verdict = check_edge(plan, edge, scratch);
    if (!verdict.ok()) return verdict;
    worst.max_scaled_error = std::max(worst.max_scaled_error, verdict.max_scaled_error);
  }
  edges_checked_.insert(name);
  return worst;
}

}  // namespace gemm
