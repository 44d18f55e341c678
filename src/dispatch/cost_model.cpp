#include "dispatch/cost_model.h"

#include "dispatch/cost_families.h"

namespace gemm {
namespace cost {
namespace {

constexpr double kSharedBytesPerClock = 128;      // of an SM
constexpr double kHalfSectorShare = 2.0;          // stores of 8 adjacent rows fill half of each 32-byte sector at a time
constexpr double kLatencyShare = 0.6;             // of a stage's arrival that other stages do not hide
constexpr double kSecondKernelUs = 1.8;           // its launch in a graph, and its first reads
constexpr double kTicketUs = 1.2;                 // fence, atomic, first read back
constexpr double kClusterUs = kLeastReductionUs;  // its two barriers, first read of a peer
constexpr double kPeerBytesPerUs = 60'000;        // that a block reads from its peers' shared memory

// Number of a load width.
int width(int floats) { return floats == 4 ? 2 : floats - 1; }

// Where rows are contiguous, no load may be cut by the last one (launch.cpp).
int cut(int floats, int64_t rows) {
  while (rows % floats != 0) floats /= 2;
  return floats;
}

}  // namespace

Geometry geometry_of(const KernelConfig& c, const CostProblem& p, int split_k) {
  Geometry g{};
  g.tiles = ceil_div(p.m, c.BM) * ceil_div(p.n, c.BN) * p.batch;
  g.blocks = g.tiles * split_k;
  g.stages = std::max(1.0, ceil_div(split_k == 1 ? p.k : ceil_div(p.k, split_k), c.BK));
  return g;
}

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

double memory_us(const KernelCost& kernel, const CostProblem& p, const Geometry& g, double active, double depth) {
  const double in_flight = active * kernel.stage_bytes * std::min<double>(kernel.config.stages - 1, depth);
  const double dram = std::min(kDramBytesPerUsPerSm * kernel.sm_count, in_flight * (1 / kMemoryLatencyUs));
  const double busy_sms = std::min(active, kernel.sm_count);
  const double l2_bytes = g.blocks * g.stages * kernel.stage_bytes + p.output_bytes;
  const bool half_sectors = kernel.half_sectors[static_cast<size_t>(p.ops)];
  const double traffic = p.bytes + (half_sectors ? kHalfSectorShare - 1 : 0) * p.output_bytes;
  return std::max(traffic / dram, l2_bytes / (kL2BytesPerUsPerSm * busy_sms));
}

double latency_us(const KernelConfig& c, double stages) {
  return stages * kMemoryLatencyUs * kLatencyShare / std::max(1, c.stages - 1);
}

double slices_us(const KernelCost& kernel, const Geometry& g) {
  return kernel.slices_us == 0 ? 0 : kernel.slices_us * ceil_div(g.blocks, kernel.sm_count);
}

double split_us(const KernelCost& kernel, const Geometry& g, int split_k, Reduction reduction) {
  if (split_k == 1) return 0;
  const double sms = kernel.sm_count;
  // Each block reads its share of all the parts, which is as much as one tile.
  if (reduction == Reduction::cluster)
    return kClusterUs + ceil_div(g.blocks, sms) * kernel.tile_bytes * (1 / kPeerBytesPerUs);
  const double bytes = g.blocks * kernel.tile_bytes;
  const double write = bytes / (kL2BytesPerUsPerSm * std::min(g.blocks, sms));
  if (reduction == Reduction::kernel) return kSecondKernelUs + write + bytes / (kL2BytesPerUsPerSm * sms);
  // The last block of a tile reads all partial tiles alone.
  return kTicketUs + write + ceil_div(g.tiles, sms) * split_k * kernel.tile_bytes * (1 / kL2BytesPerUsPerSm);
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

double CostTerms::us() const {
  // What goes on at once never quite hides each other: the largest, and more where others are near. On the 6,775 trials of
  // the skinny prototype the best of the first five was 4.8 % behind the best of all, 5.6 % with the maximum.
  return fixed + std::sqrt(compute * compute + memory * memory + latency * latency) + reduction;
}

KernelCost::KernelCost(const KernelConfig& c, const DeviceInfo& device)
    : config(c),
      resident(blocks_per_sm(c, device.limits)),
      sm_count(device.sm_count),
      us_per_slot(1 / cost::clock_mhz(device)),
      stage_bytes(4.0 * (c.BM + c.BN) * c.BK),
      tile_bytes(4.0 * c.BM * c.BN),
      least_fixed_us(cost::least_fixed_us(c)),
      slices_us(c.slices == 1 ? 0 : 2 * c.slices * tile_bytes / cost::kSharedBytesPerClock * us_per_slot) {
  if (c.family != Family::tile) return;
  for (int ops = 0; ops < 4; ++ops)
    half_sectors[static_cast<size_t>(ops)] = c.TM == 8 && !operand_layout(c, c.BM, (ops & 2) != 0, 4).k_fast;
  if (is_specialized(c.load))
    cost::prepare_specialized(*this);
  else
    cost::prepare_tile(*this);
}

CostTerms KernelCost::terms(const CostProblem& p, int split_k, Reduction reduction) const {
  switch (config.family) {
    case Family::stream: return cost::stream_terms(*this, p, split_k, reduction);
    case Family::batch: return cost::batch_terms(*this, p);
    default: break;
  }
  return is_specialized(config.load) ? cost::specialized_terms(*this, p, split_k, reduction)
                                     : cost::tile_terms(*this, p, split_k, reduction);
}

double KernelCost::reduction_us(const CostProblem& p, int split_k, Reduction reduction) const {
  return cost::split_us(*this, cost::geometry_of(config, p, split_k), split_k, reduction);
}

CostTerms KernelCost::least(const CostProblem& p) const {
  CostTerms terms;
  terms.fixed = least_fixed_us;
  terms.memory = p.bytes / (cost::kDramBytesPerUsPerSm * sm_count);
  if (config.family != Family::tile) return terms;
  const cost::Geometry g = cost::geometry_of(config, p, 1);
  const bool tensor_copies = config.load == LoadPath::tma && p.vec_a == 2 && p.vec_b == 2;
  const double warp_slots = tensor_copies ? aligned_slots[p.ops] : slots[cost::slots_index(p.ops, p.cut_a, p.cut_b)];
  const double scheduler_slots =
      is_specialized(config.load) ? aligned_slots[0] : warp_slots * config.threads() / cost::kLanesPerSm;
  const double stage_us = scheduler_slots * us_per_slot;
  terms.memory = std::max(terms.memory, g.blocks * g.stages * stage_bytes / (cost::kL2BytesPerUsPerSm * sm_count));
  // Either the busiest multiprocessor has whole tiles, or k is shared and the parts have to be added.
  CostTerms shared = terms;
  if (!is_specialized(config.load)) terms.latency = cost::latency_us(config, g.stages);
  terms.compute = cost::ceil_div(g.blocks, sm_count) * g.stages * stage_us;
  shared.compute = g.blocks * g.stages / sm_count * stage_us;
  shared.reduction = cost::kLeastReductionUs;
  return shared.us() < terms.us() ? shared : terms;
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
  return relayout_us(device, choice.relayout, problem) +
         KernelCost(choice.config, device).terms(seen, choice.split_k, choice.reduction).us();
}

double floor_us(const DeviceInfo& device, const Problem& problem) {
  const double flops_per_us = 2 * cost::kLanesPerSm * device.sm_count * cost::clock_mhz(device);
  return std::max(
      {problem.flops() / flops_per_us, problem.bytes() / (cost::kDramBytesPerUsPerSm * device.sm_count), cost::kLaunchUs});
}

}  // namespace gemm
