// Persistent blocks with a copy warpgroup (LoadPath::warp_specialized and _k).
#include "dispatch/cost_families.h"
#include "kernels/launch_arithmetic.h"

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
  const int depth = c.BK / c.slices;
  return c.compute_threads() / kLanesPerSm * (depth * per_k + kSlotsPerStage);
}

// Stages of the busiest multiprocessor: whole tiles, and its share of the others.
double busiest_stages(const PersistentGrid& grid, const Split& split, const Divisor& by_sms) {
  const double whole = grid.whole_items == 0 ? 0 : by_sms.parts(grid.whole_items) * split.stages;
  if (grid.shared_tiles == 0) return whole;
  return whole + Divisor(grid.blocks).parts(grid.shared_tiles * split.stages) * by_sms.parts(grid.blocks);
}

// Stream-k: a block writes its first and last part; the last block of a tile reads the parts of all.
double parts_us(const KernelCost& kernel, const PersistentGrid& grid) {
  if (grid.shared_tiles == 0) return 0;
  const double parts = std::max(2.0, static_cast<double>(grid.blocks) / grid.shared_tiles);
  const double one_block = kernel.tile_bytes * (2 / kPartWriteBytesPerUs + parts * (1 / kPartReadBytesPerUs));
  return kShareSetupUs + one_block * kernel.everywhere.by_sms.parts(grid.blocks);
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

double slots_of_specialized(const ProductCost& cost) {
  const KernelCost& kernel = cost.kernel;
  const KernelConfig& c = kernel.config;
  const CostProblem& p = cost.problem;
  const bool a_along_k = p.problem.op_a == Op::T, b_along_k = p.problem.op_b == Op::N;
  const bool a_singly = is_copied_singly(c, a_along_k, p.vec_a), b_singly = is_copied_singly(c, b_along_k, p.vec_b);
  const bool any_along_k = (a_along_k && !a_singly) || (b_along_k && !b_singly);
  const bool k_masked = cost.stages * c.BK != p.k;
  const auto slots_of_copies = [&](double copies, bool masked) {
    return copies * (1 + (masked || k_masked ? kMaskSlots : 0));
  };
  double slots = kernel.aligned_slots[any_along_k ? 1 : 0];
  if (a_singly) slots += slots_of_copies(kernel.copy_slots_a, cost.tiles_m * c.BM != p.m);
  if (b_singly) slots += slots_of_copies(kernel.copy_slots_b, cost.tiles_n * c.BN != p.n);
  return slots;
}

PersistentGrid grid_of(const ProductCost& cost, const Split& split, Reduction reduction) {
  const KernelConfig& c = cost.kernel.config;
  const auto sms = static_cast<int>(cost.kernel.sm_count);
  // All in one launch, as nearly always.
  if (split.blocks <= kMaxItems && (split.count == 1 || cost.tiles <= kMaxTickets))
    return share_items(c, reduction, static_cast<int64_t>(split.blocks), static_cast<int64_t>(cost.stages), sms);
  return persistent_grid({c, split.count, reduction}, cost.problem.problem, sms);
}

CostTerms specialized_terms(const ProductCost& cost, const Split& split, Reduction reduction) {
  const KernelCost& kernel = cost.kernel;
  const CostProblem& p = cost.problem;
  const Divisor& by_sms = kernel.everywhere.by_sms;
  const PersistentGrid grid = grid_of(cost, split, reduction);
  const double launches = split.blocks / std::max(1, grid.whole_items + grid.shared_tiles);  // 1 but for huge batches
  const double resident = by_sms.parts(grid.blocks), share = 1 / resident;
  const double stages = launches * busiest_stages(grid, split, by_sms);
  const double warps = resident * kernel.computing_warps;

  CostTerms terms;
  terms.compute = stages * cost.slots * kernel.us_per_slot * (warps * warps) / (warps * warps - kUnhidden);
  terms.memory = std::max(memory_us(cost, split, grid.blocks, stages * share),
                          stages * kernel.slots[slots_index(p.ops, p.vec_a, p.vec_b)] * kernel.us_per_slot);
  terms.latency = stages * share * kernel.latency_us;
  // Computing warps store their tile before they go on; other blocks of the multiprocessor hide it.
  const double store = by_sms.parts(split.blocks) * kernel.tile_bytes * (1 / kL2BytesPerUsPerSm) * share;
  terms.fixed = kLaunchUs + kPrologueUs + kSpecializedSetupUs + slices_us(kernel, split) + store + grid.blocks * kCtaUs;
  terms.reduction = parts_us(kernel, grid) + split_us(cost, split, reduction);
  return terms;
}

}  // namespace gemm::cost
