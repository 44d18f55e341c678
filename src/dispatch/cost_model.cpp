#include "dispatch/cost_model.h"

#include "dispatch/cost_formulas.h"

namespace gemm {
namespace cost {
namespace {

constexpr double kSharedBytesPerClock = 128;  // of an SM
constexpr double kLatencyShare = 0.6;         // of a stage's arrival that other stages do not hide
constexpr double kClusteredShare = 0.85;      // of the multiprocessors that clusters of three and more take (112 of 132)

// Number of a load width.
int width(int floats) { return floats == 4 ? 2 : floats - 1; }

// Where rows are contiguous, no load may be cut by the last one (launch.cpp).
int cut(int floats, int64_t rows) {
  while (rows % floats != 0) floats /= 2;
  return floats;
}

}  // namespace

KernelVariant variant_with(const KernelConfig& config, int ops, int vec_a, int vec_b) {
  constexpr int kFloats[] = {1, 2, 4};
  KernelVariant v;
  v.config = config;
  v.op_a = (ops & 2) != 0 ? Op::T : Op::N;
  v.op_b = (ops & 1) != 0 ? Op::T : Op::N;
  v.vec_a = kFloats[vec_a];
  v.vec_b = kFloats[vec_b];
  return v;
}

}  // namespace cost

namespace {

// Of the copies before a product: launch and last blocks, as of any short kernel, and the share of the DRAM bandwidth that
// they reach (3.4 to 4.0 of 4.3 TB/s were measured).
constexpr double kRelayoutUs = 2.0;
constexpr double kRelayoutShare = 0.8;

}  // namespace

CostProblem::CostProblem(const Problem& p)
    : problem(p),
      m(static_cast<double>(p.m)),
      n(static_cast<double>(p.n)),
      k(static_cast<double>(p.k)),
      batch(static_cast<double>(p.batch)),
      bytes(p.bytes()),
      output_bytes(4 * m * n * batch),
      ops((p.op_a == Op::T ? 2 : 0) + (p.op_b == Op::T ? 1 : 0)) {
  const int a = widest_vector(nullptr, p.lda, p.columns_a(), p.stride_a, p.batch);
  const int b = widest_vector(nullptr, p.ldb, p.columns_b(), p.stride_b, p.batch);
  vec_a = cost::width(a);
  vec_b = cost::width(b);
  cut_a = p.op_a == Op::T ? vec_a : cost::width(cost::cut(a, p.m));
  cut_b = p.op_b == Op::N ? vec_b : cost::width(cost::cut(b, p.n));
}

Formula formula_of(const KernelConfig& config) {
  switch (config.family) {
    case Family::stream: return Formula::stream;
    case Family::batch: return Formula::batch;
    default: return is_specialized(config.load) ? Formula::specialized : Formula::tile;
  }
}

namespace {

cost::KernelNumbers<double> kernel_numbers(const KernelConfig& c, const DeviceInfo& device) {
  cost::KernelNumbers<double> n{};
  n.BM = c.BM, n.BN = c.BN, n.BK = c.BK;
  n.sm_count = device.sm_count;
  n.resident = blocks_per_sm(c, device.limits);
  n.blocks = n.sm_count * n.resident;
  const double clustered_sms = n.sm_count * cost::kClusteredShare;
  n.clustered_blocks = clustered_sms * n.resident;
  n.by_BM = Divisor(n.BM), n.by_BN = Divisor(n.BN), n.by_BK = Divisor(n.BK);
  n.by_sms = Divisor(n.sm_count), n.by_clustered_sms = Divisor(clustered_sms);
  n.by_blocks = Divisor(n.blocks), n.by_clustered_blocks = Divisor(n.clustered_blocks);
  n.us_per_slot = 1 / cost::clock_mhz(device);
  n.stage_bytes = 4 * (n.BM + n.BN) * n.BK;
  n.tile_bytes = 4 * n.BM * n.BN;
  n.slices_us = c.slices == 1 ? 0 : 2 * c.slices * n.tile_bytes / cost::kSharedBytesPerClock * n.us_per_slot;
  n.latency_us = cost::kMemoryLatencyUs * cost::kLatencyShare / std::max(1, c.stages - 1);
  n.stages_ahead = c.stages - 1;
  n.warps = c.threads() / cost::kLanesPerSm;
  n.computing_warps = c.compute_threads() / cost::kLanesPerSm;
  n.chains = n.warps * c.accumulators() / 64;
  if (c.family == Family::stream) n.stream_bytes = c.threads() * c.stages * stream_shape(c).lane_rows * 16;
  n.by_matrices = Divisor(c.family == Family::batch ? matrices_per_block(c) : 1);
  return n;
}

}  // namespace

KernelCost::KernelCost(const KernelConfig& c, const DeviceInfo& device)
    : config(c), formula(formula_of(c)), numbers(kernel_numbers(c, device)) {
  if (formula == Formula::specialized) cost::prepare_specialized(*this);
  if (formula == Formula::tile) cost::prepare_tile(*this);
}

CostTerms ProductCost::terms(int split, Reduction reduction) const {
  const cost::Split<double> shares = product_.split(split);
  CostTerms terms = cost::terms_of(product_, shares, reduction == Reduction::cluster, reduction == Reduction::stream_k);
  if (split > 1) terms.reduction += cost::split_us(product_, shares, reduction);
  return terms;
}

int blocks_per_sm(const KernelConfig& config, const DeviceLimits& limits) {
  // Persistent blocks: as many are launched.
  if (is_specialized(config.load)) return config.min_blocks;
  const int by_shared = limits.shared_bytes_per_sm / (worst_shared_bytes(config) + 1024);
  const int by_threads = limits.threads_per_sm / config.threads();
  const int registers = std::min(255, std::max(32, (estimated_registers(config) + 7) / 8 * 8));
  const int by_registers = limits.registers_per_sm / (registers * config.threads());
  return std::clamp(std::min({by_shared, by_threads, std::max(by_registers, config.min_blocks)}), 1, 32);
}

double relayout_us(const DeviceInfo& device, Relayout relayout, const Problem& problem) {
  if (relayout == Relayout::none) return 0;
  const RelaidProduct product = relaid_product(relayout, problem);
  const auto floats = [&](bool copied, int64_t rows) { return copied ? static_cast<double>(rows) : 0.0; };
  const double copied = (floats(copies_a(relayout), problem.m) + floats(copies_b(relayout), problem.n)) *
                        static_cast<double>(problem.k) * static_cast<double>(problem.batch);
  return kRelayoutUs * static_cast<double>(product.panels) +
         8 * copied / (kRelayoutShare * cost::kDramBytesPerUsPerSm * device.sm_count);
}

double predicted_us(const DeviceInfo& device, const Choice& choice, const Problem& problem) {
  const CostProblem seen(relaid_problem(choice.relayout, problem));
  const KernelCost kernel(choice.config, device);
  const ProductCost product(kernel, seen);
  return relayout_us(device, choice.relayout, problem) + product.terms(choice.split_k, choice.reduction).us();
}

double floor_us(const DeviceInfo& device, const Problem& problem) {
  const double flops_per_us = 2 * cost::kLanesPerSm * device.sm_count * cost::clock_mhz(device);
  return std::max(
      {problem.flops() / flops_per_us, problem.bytes() / (cost::kDramBytesPerUsPerSm * device.sm_count), cost::kLaunchUs});
}

}  // namespace gemm
