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
constexpr double kClusteredShare = 0.85;          // of the multiprocessors that clusters of three and more take (112 of 132)

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

double split_us(const ProductCost& cost, const Split& split, Reduction reduction) {
  if (split.count == 1) return 0;
  const KernelCost& kernel = cost.kernel;
  const Divisor& by_sms = kernel.everywhere.by_sms;
  // Each block reads its share of all the parts, which is as much as one tile.
  if (reduction == Reduction::cluster)
    return kClusterUs + by_sms.parts(split.blocks) * kernel.tile_bytes * (1 / kPeerBytesPerUs);
  const double us_per_tile = kernel.tile_bytes * (1 / kL2BytesPerUsPerSm);  // by one multiprocessor
  const double all_us = split.blocks * us_per_tile / kernel.sm_count;       // by all of them
  const double write = split.blocks < kernel.sm_count ? us_per_tile : all_us;
  if (reduction == Reduction::kernel) return kSecondKernelUs + write + all_us;
  // The last block of a tile reads all partial tiles alone.
  return kTicketUs + write + by_sms.parts(cost.tiles) * split.count * us_per_tile;
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

KernelCost::KernelCost(const KernelConfig& c, const DeviceInfo& device)
    : config(c),
      resident(blocks_per_sm(c, device.limits)),
      sm_count(device.sm_count),
      us_per_slot(1 / cost::clock_mhz(device)),
      stage_bytes(4.0 * (c.BM + c.BN) * c.BK),
      tile_bytes(4.0 * c.BM * c.BN),
      least_fixed_us(cost::least_fixed_us(c)),
      slices_us(c.slices == 1 ? 0 : 2 * c.slices * tile_bytes / cost::kSharedBytesPerClock * us_per_slot),
      latency_us(cost::kMemoryLatencyUs * cost::kLatencyShare / std::max(1, c.stages - 1)),
      stages_ahead(c.stages - 1),
      warps(c.threads() / cost::kLanesPerSm),
      computing_warps(c.compute_threads() / cost::kLanesPerSm),
      chains(warps * c.accumulators() / 64),
      by_BM(c.BM),
      by_BN(c.BN),
      by_BK(c.BK),
      everywhere(sm_count, resident),
      in_clusters(sm_count * cost::kClusteredShare, resident) {
  if (c.family != Family::tile) return;
  for (int ops = 0; ops < 4; ++ops)
    half_sectors[static_cast<size_t>(ops)] = c.TM == 8 && !operand_layout(c, c.BM, (ops & 2) != 0, 4).k_fast;
  if (is_specialized(c.load))
    cost::prepare_specialized(*this);
  else
    cost::prepare_tile(*this);
}

ProductCost::ProductCost(const KernelCost& its_kernel, const CostProblem& p)
    : kernel(its_kernel),
      problem(p),
      tiles_m(kernel.by_BM.parts(p.m)),
      tiles_n(kernel.by_BN.parts(p.n)),
      tiles(tiles_m * tiles_n * p.batch),
      stages(kernel.by_BK.parts(p.k)) {
  const KernelConfig& c = kernel.config;
  if (c.family != Family::tile) return;
  tensor_copies = c.load == LoadPath::tma && p.vec_a == 2 && p.vec_b == 2;
  slots = is_specialized(c.load) ? cost::slots_of_specialized(*this) : cost::slots_of_tile(*this);
  traffic = p.bytes + (kernel.half_sectors[static_cast<size_t>(p.ops)] ? cost::kHalfSectorShare - 1 : 0) * p.output_bytes;
}

CostTerms ProductCost::terms(const Split& split, Reduction reduction) const {
  switch (kernel.config.family) {
    case Family::stream: return cost::stream_terms(*this, split, reduction);
    case Family::batch: return cost::batch_terms(*this);
    default: break;
  }
  return is_specialized(kernel.config.load) ? cost::specialized_terms(*this, split, reduction)
                                            : cost::tile_terms(*this, split, reduction);
}

double ProductCost::reduction_us(const Split& split, Reduction reduction) const {
  return cost::split_us(*this, split, reduction);
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
  return relayout_us(device, choice.relayout, problem) + product.terms(product.split(choice.split_k), choice.reduction).us();
}

double floor_us(const DeviceInfo& device, const Problem& problem) {
  const double flops_per_us = 2 * cost::kLanesPerSm * device.sm_count * cost::clock_mhz(device);
  return std::max(
      {problem.flops() / flops_per_us, problem.bytes() / (cost::kDramBytesPerUsPerSm * device.sm_count), cost::kLaunchUs});
}

}  // namespace gemm
