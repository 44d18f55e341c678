#include "kernels/ladder.h"

#include <limits>

namespace gemm {
namespace {

// Counting in tiles rounds sizes up by less than this.
constexpr int64_t kMaxSize = std::numeric_limits<int>::max() - 1024;

// Shared memory of a slab of A and one of B.
constexpr int slab_bytes(int tile_m, int tile_n, int depth) { return (tile_m + tile_n) * depth * 4; }

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t tiles_of(const LadderRung& rung, const Problem& p) {
  return ceil_div(p.m, rung.tile_m) * ceil_div(p.n, rung.tile_n);
}

bool allows_wide(const Problem& p, const Operands& o) {
  return widest_vector(o.a, p.lda, p.k, 0, 1) == 4 && widest_vector(o.b, p.ldb, p.n, 0, 1) == 4 &&
         widest_vector(o.c, p.ldc, p.n, 0, 1) == 4;
}

}  // namespace

const std::vector<LadderRung>& ladder_rungs() {
  static const std::vector<LadderRung> rungs = {
      {"naive", "one thread per result; a warp walks along a row of C", 32, 32, 1024, 0},
      {"coalesced", "a warp walks down a column: neighbouring threads, neighbouring addresses", 32, 32, 1024, 0},
      {"shared", "32x32 slabs of A and B in shared memory", 32, 32, 1024, slab_bytes(32, 32, 32)},
      {"tile_1d", "64x64 tile, each thread 8 results of a row", 64, 64, 512, slab_bytes(64, 64, 8)},
      {"tile_2d", "128x128 tile, each thread 8x8 results from registers", 128, 128, 256, slab_bytes(128, 128, 8)},
      {"vectorised", "16-byte accesses; B is transposed on its way to shared memory", 128, 128, 256,
       slab_bytes(128, 128, 8)},
  };
  return rungs;
}

KernelSpec ladder_spec(const LadderRung& rung) {
  const std::string name = std::string("ladder_") + rung.name;
  return {name, "ladder.cuh", "gemm::" + name, "gemm::LadderArgs", rung.threads, 1};
}

std::string why_not_on_ladder(const Problem& p) {
  if (p.op_a != Op::N || p.op_b != Op::N) return "the ladder has no transposes";
  if (p.batch != 1) return "the ladder has no batches";
  if (p.m > kMaxSize || p.n > kMaxSize || p.k > kMaxSize || tiles_of(ladder_rungs().front(), p) > kMaxSize)
    return "a dimension does not fit 32 bits";
  return why_refused(p);
}

Result<bool> launch_ladder(Device& device, const Kernel& kernel, const LadderRung& rung, const Problem& p, const Operands& o,
                           Stream stream) {
  if (const std::string why = why_not_on_ladder(p); !why.empty()) return Failure{why + " (" + to_string(p) + ")"};
  if (p.empty()) return true;
  LadderArgs args{};
  args.a = o.a, args.b = o.b, args.c = o.c;
  args.lda = p.lda, args.ldb = p.ldb, args.ldc = p.ldc;
  args.m = static_cast<int>(p.m), args.n = static_cast<int>(p.n), args.k = static_cast<int>(p.k);
  args.wide = allows_wide(p, o);
  args.alpha = o.alpha, args.beta = o.beta;
  const Grid grid{static_cast<unsigned>(tiles_of(rung, p)), 1, 1};
  return device.launch(kernel, grid, rung.threads, rung.shared_bytes, &args, sizeof args, stream);
}

}  // namespace gemm
