// Persistent blocks with a copy warpgroup (LoadPath::warp_specialized).
#include "dispatch/cost_families.h"

namespace gemm::cost {
namespace {

constexpr double kSlotsPerStage = 20;             // loop, wait, and the arrival that frees the stage
constexpr double kSetupUs = 2.0;                  // barriers, tensor maps, registers change hands (64 x 64 x 64: 2.1)
constexpr double kUnhidden = 0.15;                // of the issue slots where a scheduler has one computing warp
constexpr double kMaskSlots = 3;                  // of a 4-byte copy that may lie outside: compare, select, shift
constexpr double kLinesPerCopy = 4;               // lines of memory that 32 transposing 4-byte copies touch
constexpr double kShareSetupUs = 2;               // stream-k: its flags, and waiting for the other blocks of a tile
constexpr double kPartWriteBytesPerUs = 100'000;  // of partial tiles, per SM
constexpr double kPartReadBytesPerUs = 60'000;    // by the block that adds them one after the other (prototype, 512 to 1536)

// Issue slots of a scheduler's copying warp for one operand of a stage; the tensor copy engine needs none.
double copy_slots(const KernelVariant& v, int vec, int tile_rows, int64_t rows, int64_t k) {
  if (vec == 4) return 0;
  const bool masked = rows % tile_rows != 0 || k % v.config.BK != 0;
  return static_cast<double>(tile_rows) * v.config.BK / kLanesPerSm * (1 + (masked ? kMaskSlots : 0));
}

// Cycles that an SM's memory pipe needs for the 4-byte copies of a stage.
double copy_passes(const KernelVariant& v) {
  const KernelConfig& c = v.config;
  const auto passes = [&](int vec, bool along_k, int rows) {
    return vec == 4 ? 0.0 : rows * c.BK / 32.0 * (along_k ? kLinesPerCopy : 1);
  };
  return passes(v.vec_a, v.a_along_k(), c.BM) + passes(v.vec_b, v.b_along_k(), c.BN);
}

// Issue slots of a scheduler for one stage of one block.
double slots_per_stage(const KernelVariant& v, const Problem& p) {
  const KernelConfig& c = v.config;
  const double per_k =
      c.accumulators() * kConflictShare + kSlotsPerFragmentRegister * (c.thread_rows() + c.thread_columns());
  const double computing = c.compute_threads() / kLanesPerSm * (c.BK / c.slices * per_k + kSlotsPerStage);
  return computing + copy_slots(v, v.vec_a, c.BM, p.m, p.k) + copy_slots(v, v.vec_b, c.BN, p.n, p.k);
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

}  // namespace

double specialized_us(const DeviceInfo& device, const Choice& choice, const Problem& problem) {
  const KernelConfig& c = choice.config;
  const Geometry g = geometry_of(choice, problem);
  const PersistentGrid grid = persistent_grid(choice, problem, device.sm_count);
  const double launches = g.blocks / std::max(1, grid.whole_items + grid.shared_tiles);  // 1 but for huge batches
  const double resident = ceil_div(grid.blocks, device.sm_count);
  const double stages = launches * busiest_stages(grid, g, device.sm_count);

  const double warps = resident * c.compute_threads() / kLanesPerSm;  // of a scheduler
  const KernelVariant variant = variant_for(c, problem, {});
  const double compute = stages * slots_per_stage(variant, problem) / (1 - kUnhidden / (warps * warps)) / clock_mhz(device);
  const double memory = std::max(memory_us(device, c, problem, g, grid.blocks, stages / resident),
                                 stages * copy_passes(variant) / clock_mhz(device));
  // Computing warps store their tile before they go on; other blocks of the multiprocessor hide it.
  const double store = ceil_div(g.blocks, device.sm_count) * 4.0 * c.BM * c.BN / kL2BytesPerUsPerSm / resident;
  return kLaunchUs + kPrologueUs + kSetupUs + slices_us(device, c, g) +
         overlapped(compute, memory, latency_us(c, stages / resident)) + store + parts_us(c, grid, device.sm_count) +
         split_us(device, choice, g) + grid.blocks * kCtaUs;
}

}  // namespace gemm::cost
