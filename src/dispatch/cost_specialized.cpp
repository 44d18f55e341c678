// Persistent blocks with a copy warpgroup (LoadPath::warp_specialized and _k).
#include "dispatch/cost_families.h"

namespace gemm::cost {
namespace {

constexpr double kSlotsPerStage = 20;             // loop, wait, and the arrival that frees the stage
constexpr double kUnhidden = 0.15;                // of the issue slots where a scheduler has one computing warp
constexpr double kMaskSlots = 3;                  // of a 4-byte copy that may lie outside: compare, select, shift
constexpr double kLinesPerCopy = 4;               // lines of memory that 32 transposing 4-byte copies touch
constexpr double kShareSetupUs = 2;               // stream-k: its flags, and waiting for the other blocks of a tile
constexpr double kPartWriteBytesPerUs = 100'000;  // of partial tiles, per SM
constexpr double kPartReadBytesPerUs = 60'000;    // by the block that adds them one after the other (prototype, 512 to 1536)

// Cycles that an SM's memory pipe needs for the 4-byte copies of a stage.
double copy_passes(const KernelVariant& v) {
  const KernelConfig& c = v.config;
  const auto passes = [&](int vec, bool along_k, int rows) {
    return vec == 4 ? 0.0 : rows * c.BK / 32.0 * (along_k ? kLinesPerCopy : 1);
  };
  return passes(v.vec_a, v.a_along_k(), c.BM) + passes(v.vec_b, v.b_along_k(), c.BN);
}

// With operands that stay along k: static scores of cubins find 569 conflicts for 2,048 FMAs of 8 x 16 results, and 24 for
// 1,024 of 8 x 8, where ptxas has registers to move accumulators.
double conflict_share_along_k(const KernelConfig& c) { return c.accumulators() > 64 ? 1.28 : 1.05; }

// Issue slots of a scheduler's computing warps for one stage of one block.
double compute_slots(const KernelConfig& c, double conflict_share) {
  const double per_k =
      c.accumulators() * conflict_share + kSlotsPerFragmentRegister * (c.thread_rows() + c.thread_columns());
  return c.compute_threads() / kLanesPerSm * (c.BK / c.slices * per_k + kSlotsPerStage);
}

// Stages of the busiest multiprocessor: whole tiles, and its share of the others.
double busiest_stages(const PersistentGrid& grid, const Geometry& g, int sm_count) {
  const double whole = ceil_div(grid.whole_items, sm_count) * g.stages;
  if (grid.shared_tiles == 0) return whole;
  const double per_block = ceil_div(grid.shared_tiles * g.stages, grid.blocks);
  return whole + per_block * ceil_div(grid.blocks, sm_count);
}

// Stream-k: a block writes its first and last part; the last block of a tile reads the parts of all.
double parts_us(const KernelConfig& c, const PersistentGrid& grid, int sm_count) {
  if (grid.shared_tiles == 0) return 0;
  const double tile_bytes = 4.0 * c.BM * c.BN;
  const double parts = std::max(2.0, static_cast<double>(grid.blocks) / grid.shared_tiles);
  const double one_block = tile_bytes * (2 / kPartWriteBytesPerUs + parts / kPartReadBytesPerUs);
  return kShareSetupUs + one_block * ceil_div(grid.blocks, sm_count);
}

// What is aligned comes as boxes, except where it has to be transposed. `vec` is the number of a load width.
bool is_copied_singly(const KernelConfig& c, bool along_k, int vec) { return vec < 2 || (along_k && !stays_along_k(c, 4)); }

}  // namespace

void prepare_specialized(KernelCost& kernel) {
  const KernelConfig& c = kernel.config;
  // Cycles of the memory pipe; the issue slots of copying are added where they are known to be masked or not.
  for (int ops = 0; ops < 4; ++ops)
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b) {
        KernelVariant v = variant_with(c, ops, a, b);
        v.vec_a = is_copied_singly(c, v.a_along_k(), a) ? 1 : 4;
        v.vec_b = is_copied_singly(c, v.b_along_k(), b) ? 1 : 4;
        kernel.slots[slots_index(ops, a, b)] = copy_passes(v);
      }
  kernel.aligned_slots[0] = compute_slots(c, kConflictShare);
  kernel.aligned_slots[1] = compute_slots(c, conflict_share_along_k(c));
  kernel.copy_slots_a = c.BM * c.BK / kLanesPerSm;
  kernel.copy_slots_b = c.BN * c.BK / kLanesPerSm;
}

CostTerms specialized_terms(const KernelCost& kernel, const CostProblem& p, int split_k, Reduction reduction) {
  const KernelConfig& c = kernel.config;
  const Geometry g = geometry_of(c, p, split_k);
  const int sms = static_cast<int>(kernel.sm_count);
  const PersistentGrid grid = persistent_grid({c, split_k, reduction}, p.problem, sms);
  const double launches = g.blocks / std::max(1, grid.whole_items + grid.shared_tiles);  // 1 but for huge batches
  const double resident = ceil_div(grid.blocks, kernel.sm_count);
  const double stages = launches * busiest_stages(grid, g, sms);

  const bool a_along_k = p.problem.op_a == Op::T, b_along_k = p.problem.op_b == Op::N;
  const bool a_singly = is_copied_singly(c, a_along_k, p.vec_a), b_singly = is_copied_singly(c, b_along_k, p.vec_b);
  const bool any_along_k = (a_along_k && !a_singly) || (b_along_k && !b_singly);
  double slots = kernel.aligned_slots[any_along_k ? 1 : 0];
  const auto add_copies = [&](bool singly, double copies, int tile_rows, int64_t rows) {
    if (!singly) return;
    const bool masked = rows % tile_rows != 0 || p.problem.k % c.BK != 0;
    slots += copies * (1 + (masked ? kMaskSlots : 0));
  };
  add_copies(a_singly, kernel.copy_slots_a, c.BM, p.problem.m);
  add_copies(b_singly, kernel.copy_slots_b, c.BN, p.problem.n);
  const double warps = resident * c.compute_threads() / kLanesPerSm;  // of a scheduler

  CostTerms terms;
  terms.compute = stages * slots / (1 - kUnhidden / (warps * warps)) * kernel.us_per_slot;
  terms.memory = std::max(memory_us(kernel, p, g, grid.blocks, stages / resident),
                          stages * kernel.slots[slots_index(p.ops, p.vec_a, p.vec_b)] * kernel.us_per_slot);
  terms.latency = latency_us(c, stages / resident);
  // Computing warps store their tile before they go on; other blocks of the multiprocessor hide it.
  const double store = ceil_div(g.blocks, kernel.sm_count) * kernel.tile_bytes / kL2BytesPerUsPerSm / resident;
  terms.fixed = kLaunchUs + kPrologueUs + kSpecializedSetupUs + slices_us(kernel, g) + store + grid.blocks * kCtaUs;
  terms.reduction = parts_us(c, grid, sms) + split_us(kernel, g, split_k, reduction);
  return terms;
}

}  // namespace gemm::cost
