// From a problem and a configuration to a launch: which variant fits the pointers, how k is split, how much workspace it
// takes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/device.h"
#include "kernels/kernel_args.h"
#include "kernels/problem.h"
#include "kernels/relayout.h"

namespace gemm {

// How k is shared among blocks and their partial tiles are added, always in the order of k.
//   ticket    split_k blocks for every tile; the last one of them adds
//   kernel    the same, but a second launch adds
//   stream_k  split_k is 1: the tiles that do not fill a whole wave share their k evenly among all blocks; the last block of
//             a tile adds (LoadPath::warp_specialized)
//   cluster   split_k is 2 to 8: the blocks of a tile form a thread-block cluster, read each other's partial tiles in shared
//             memory and add a share each; no workspace (tile family without warp_specialized, sm_90+)
enum class Reduction : unsigned char { ticket, kernel, stream_k, cluster };
const char* to_string(Reduction reduction);
bool from_string(const std::string& text, Reduction& reduction);

// What a table point names: a configuration with its launch arguments.
struct Choice {
  KernelConfig config{};
  int split_k = 1;
  Reduction reduction = Reduction::ticket;
  Relayout relayout = Relayout::none;  // operands that are copied first; not where the call leaves pointers on the GPU

  friend bool operator==(const Choice&, const Choice&) = default;
};
// Config id, with "/split 4 ticket" where k is split and "/relayout ab" where operands are copied.
std::string to_string(const Choice& choice);
// The same without copies: what runs on them.
Choice without_relayout(Choice choice);

// What a call leaves in GPU memory instead of naming it on the host (KernelVariant::indirect). Where plans are made only the
// two flags are looked at.
struct Indirection {
  bool scalars = false;  // alpha and beta lie at these pointers
  bool arrays = false;   // the matrices of the batch lie where these arrays of pointers say; strides mean nothing
  const float* alpha = nullptr;
  const float* beta = nullptr;
  const float* const* a = nullptr;
  const float* const* b = nullptr;
  float* const* c = nullptr;

  bool any() const { return scalars || arrays; }
};

// The operands of one call, and what is done to C last. Pointers are device pointers and may be null when they are not read.
struct Operands {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  float alpha = 1, beta = 0;
  Indirection indirect{};
  Epilogue epilogue = Epilogue::none;
  Bias bias{};  // where the epilogue adds one; 4-byte aligned
};

// Workspace that dispatch has by default, so that no tuned choice may need more: the copies of operands, and the partial
// tiles of stream-k (264 of 256 x 128 on 132 multiprocessors are 33 MiB).
inline constexpr int64_t kWorkspaceBytes = kMostCopyBytes + (int64_t{40} << 20);

// Largest number of tiles times batches that a ticketed split can have: the length of a ticket buffer.
inline constexpr int kMaxTickets = 16384;

// Widest load (4, 2 or 1 floats) that pointer, leading dimension and batch stride all allow.
int widest_vector(const void* pointer, int64_t ld, int64_t columns, int64_t stride, int64_t batch);

// The variant of `config` for this problem and these pointers, and the one that a choice runs.
KernelVariant variant_for(const KernelConfig& config, const Problem& problem, const Operands& operands);
KernelVariant variant_of(const Choice& choice, const Problem& problem, const Operands& operands);

// Persistent blocks of LoadPath::warp_specialized: how many, and how they share the work.
struct PersistentGrid {
  int blocks = 0;
  int whole_items = 0, shared_tiles = 0;  // see TileArgs
};
PersistentGrid persistent_grid(const Choice& choice, const Problem& problem, int sm_count);

// Split that remains after every block has got at least one stage of k: 1 <= result <= split_k.
int effective_split(const KernelConfig& config, const Problem& problem, int split_k);

// Bytes of workspace for copies of operands and for partial tiles; of the latter none when k is not split, or within a
// cluster.
int64_t workspace_bytes(const Choice& choice, const Problem& problem, int sm_count);

// Why this choice cannot serve the problem on such a device with that much workspace, or an empty string.
std::string why_illegal(const Choice& choice, const Problem& problem, const DeviceInfo& device, int64_t workspace_available);
// The same where the configuration is known to be valid on the device (why_invalid), which takes as long to find out as all
// the rest.
std::string why_unfit(const Choice& choice, const Problem& problem, const DeviceInfo& device, int64_t workspace_available);

// The grid of one launch, and for persistent blocks what TileArgs says of their work.
struct LaunchShape {
  Grid grid;
  int whole_items = 0, shared_tiles = 0;
};

struct RelaidPlan;

// A problem bound to compiled kernels: what dispatch remembers. Everything that does not change from call to call is
// computed, so launching it allocates nothing and computes next to nothing.
struct TilePlan {
  // Of the problem that bind_problem was given.
  TmaTileArgs args{};    // without what a call brings; maps of the operands that the tensor copy engine copies
  LaunchShape shape;     // of `matrices` matrices
  int64_t matrices = 1;  // of the batch, in one launch
  unsigned shared_bytes = 0;
  unsigned reduce_grid_y = 0;

  std::shared_ptr<Kernel> tile;
  std::shared_ptr<Kernel> reduce;  // null unless reduction is `kernel` and k is split
  Choice choice;                   // with the effective split
  KernelVariant variant;
  std::shared_ptr<const RelaidPlan> relaid;  // where operands are copied; then the rest is of the first panel's product
};

// What a plan has beside the kernel where operands are copied first.
struct RelaidPlan {
  RelaidProduct product;
  std::shared_ptr<Kernel> copy;
  TilePlan last;  // of the last panel
};

// Computes those parts of a plan, without relayout, for a problem and operands that the plan's variant fits. build_plan does
// it; a plan that moves to another problem needs it again.
Result<bool> bind_problem(Device& device, TilePlan& plan, const Problem& problem, const Operands& operands);

// Compiles what the choice needs for this problem and these pointers' alignment, and binds the problem.
Result<TilePlan> build_plan(Device& device, const Choice& choice, const Problem& problem, const Operands& operands);

// Enqueues the product of the bound problem: the copies where operands are relaid, one tile launch for every 65,535 matrices
// of the batch, and the reduction where k is split. `workspace` has workspace_bytes(...) bytes, `tickets` kMaxTickets zeroed
// words (left zero again); both may be null where no workspace is needed, and belong to one stream at a time.
Result<bool> launch_plan(Device& device, const TilePlan& plan, const Problem& problem, const Operands& operands,
                         float* workspace, unsigned* tickets, Stream stream);

// C = beta * C and the epilogue, for alpha = 0 or k = 0. `scale` is built from scale_spec_for(operands).
KernelSpec scale_spec_for(const Operands& operands);
Result<bool> launch_scale(Device& device, const Kernel& scale, const Problem& problem, const Operands& operands,
                          Stream stream);

}  // namespace gemm
