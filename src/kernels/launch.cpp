#include "kernels/launch.h"

#include <algorithm>

#include "kernels/launch_arithmetic.h"

namespace gemm {
namespace {

// True when byte offsets inside a tile do not fit 32 bits: `lines` lines of `ld` floats.
// Divided, because callers may give any leading dimension to a matrix of one column.
bool needs_long_offsets(int lines, int64_t ld) { return ld > (0xffffffffll / 4 - 1024) / lines; }

}  // namespace

int64_t batch_per_launch(const Choice& choice, const Problem& p) {
  int64_t limit = kMaxGridYZ;
  if (choice.config.family == Family::batch) limit = kMaxInt;
  if (is_persistent(choice.config))
    limit = kMaxItems / std::max<int64_t>(1, tiles_of(choice.config, p) * std::max(1, choice.split_k));
  if (choice.split_k > 1 && choice.reduction != Reduction::cluster)
    limit = std::min(limit, kMaxTickets / std::max<int64_t>(1, tiles_of(choice.config, p)));
  return std::clamp<int64_t>(p.batch, 1, std::max<int64_t>(1, limit));
}

const char* to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::kernel: return "kernel";
    case Reduction::stream_k: return "stream_k";
    case Reduction::cluster: return "cluster";
    default: return "ticket";
  }
}

bool from_string(const std::string& text, Reduction& reduction) {
  for (const Reduction candidate : {Reduction::ticket, Reduction::kernel, Reduction::stream_k, Reduction::cluster})
    if (text == to_string(candidate)) {
      reduction = candidate;
      return true;
    }
  return false;
}

std::string to_string(const Choice& choice) {
  std::string text = config_id(choice.config);
  if (choice.split_k > 1) text += "/split " + std::to_string(choice.split_k) + " " + to_string(choice.reduction);
  if (choice.reduction == Reduction::stream_k) text += "/stream_k";
  if (choice.relayout != Relayout::none) text += std::string("/relayout ") + to_string(choice.relayout);
  return text;
}

Choice without_relayout(Choice choice) {
  choice.relayout = Relayout::none;
  return choice;
}

int widest_vector(const void* pointer, int64_t ld, int64_t columns, int64_t stride, int64_t batch) {
  const auto fits = [&](int64_t floats) {
    return reinterpret_cast<uintptr_t>(pointer) % (4 * static_cast<uintptr_t>(floats)) == 0 &&
           (columns <= 1 || ld % floats == 0) && (batch <= 1 || stride % floats == 0);
  };
  return fits(4) ? 4 : fits(2) ? 2 : 1;
}

PersistentGrid persistent_grid(const Choice& choice, const Problem& p, int sm_count) {
  // The cost model asks about products with more items, too, which are never launched (why_persistent_illegal).
  const int64_t items = std::min(kMaxItems, tiles_of(choice.config, p) * split_of(choice) * batch_per_launch(choice, p));
  return share_items(choice.config, choice.reduction, items, ceil_div(p.k, choice.config.BK), sm_count);
}

namespace {

// Calls with pointers on the GPU are rare enough for two variants each: all loads of 16 bytes, or all of single floats.
KernelVariant with_indirect_widths(KernelVariant v) {
  if (v.indirect && (v.vec_a < 4 || v.vec_b < 4)) v.vec_a = v.vec_b = 1;
  return v;
}

// Loads as wide as alignment allows, whatever the sizes. Of the matrices of pointer arrays it judges the leading dimensions;
// the kernel looks at the addresses.
KernelVariant aligned_variant(const KernelConfig& config, const Problem& p, const Operands& o) {
  KernelVariant v;
  v.config = config;
  v.op_a = p.op_a;
  v.op_b = p.op_b;
  v.vec_a = widest_vector(o.a, p.lda, p.columns_a(), p.stride_a, p.batch);
  v.vec_b = widest_vector(o.b, p.ldb, p.columns_b(), p.stride_b, p.batch);
  v.indirect = o.indirect.any();
  v.epilogue = o.epilogue;
  return with_indirect_widths(v);
}

// The tensor copy engine needs 16-byte alignment and cuts boxes at the edges by itself. Copying warps move single floats of
// what is not aligned, or has to be transposed.
KernelVariant specialized_variant(KernelVariant v) {
  const auto vec_of = [&](bool along_k, int vec) { return vec == 4 && (!along_k || stays_along_k(v.config, vec)) ? 4 : 1; };
  v.vec_a = vec_of(v.a_along_k(), v.vec_a);
  v.vec_b = vec_of(v.b_along_k(), v.vec_b);
  return v;
}

KernelVariant copied_variant(KernelVariant v, const Problem& p) {
  // Where rows are contiguous, no load may be cut by the last one (operand.cuh).
  if (!v.a_along_k())
    while (p.m % v.vec_a != 0) v.vec_a /= 2;
  if (!v.b_along_k())
    while (p.n % v.vec_b != 0) v.vec_b /= 2;
  v = with_indirect_widths(v);
  if (v.config.family != Family::tile) {
    // Memory-bound kernels: what is not aligned to 16 bytes is rare enough for one variant with single floats.
    if (v.vec_a < 4) v.vec_a = 1;
    if (v.vec_b < 4) v.vec_b = 1;
    return v;
  }
  // A transposing cp.async moves single floats whatever the alignment: one variant serves all.
  if (v.config.load == LoadPath::async_transpose) {
    if (v.a_along_k()) v.vec_a = 1;
    if (v.b_along_k()) v.vec_b = 1;
  }
  v.long_ld = needs_long_offsets(v.a_along_k() ? v.config.BM : v.config.BK, p.lda) ||
              needs_long_offsets(v.b_along_k() ? v.config.BN : v.config.BK, p.ldb);
  // So long leading dimensions are rare: one variant with single floats serves them.
  if (v.long_ld) v.vec_a = v.vec_b = 1;
  return v;
}

}  // namespace

KernelVariant variant_for(const KernelConfig& config, const Problem& p, const Operands& o) {
  KernelVariant v = aligned_variant(config, p, o);
  // A tensor map describes matrices at equal distances.
  if (is_specialized(config.load)) {
    if (o.indirect.arrays) v.vec_a = v.vec_b = 1;
    return specialized_variant(v);
  }
  if (config.load == LoadPath::tma) {
    if (v.vec_a == 4 && v.vec_b == 4 && !o.indirect.arrays) return v;
    v.config.load = LoadPath::async;  // valid as well, says why_invalid
  }
  return copied_variant(v, p);
}

KernelVariant variant_of(const Choice& choice, const Problem& p, const Operands& o) {
  if (choice.relayout != Relayout::none && !o.indirect.any()) {
    Operands copies = o;
    if (copies_a(choice.relayout)) copies.a = nullptr;
    if (copies_b(choice.relayout)) copies.b = nullptr;
    return variant_of(without_relayout(choice), relaid_problem(choice.relayout, p), copies);
  }
  KernelVariant v = variant_for(choice.config, p, o);
  v.cluster = choice.reduction == Reduction::cluster;
  return v;
}

int effective_split(const KernelConfig& config, const Problem& p, int split_k) {
  const int64_t blocks = std::max<int64_t>(1, ceil_div(p.k, config.BK));
  const int64_t split = std::clamp<int64_t>(split_k, 1, std::min(blocks, kMaxGridYZ));
  return static_cast<int>(ceil_div(blocks, ceil_div(blocks, split)));
}

int64_t workspace_bytes(const Choice& choice, const Problem& p, int sm_count) {
  if (p.empty()) return 0;
  if (choice.relayout != Relayout::none) {
    const RelaidProduct product = relaid_product(choice.relayout, p);
    const Choice inner = without_relayout(choice);
    // The last panel may have tiles to share where the others have not.
    return product.copy_bytes() +
           std::max(workspace_bytes(inner, product.panel, sm_count), workspace_bytes(inner, product.last, sm_count));
  }
  if (choice.reduction == Reduction::stream_k) {
    const PersistentGrid grid = persistent_grid(choice, p, sm_count);
    // The first and the last piece of a block's share.
    return grid.shared_tiles == 0 ? 0 : int64_t{2} * grid.blocks * choice.config.BM * choice.config.BN * 4;
  }
  const int split = effective_split(choice.config, p, choice.split_k);
  if (split == 1 || choice.reduction == Reduction::cluster) return 0;
  return batch_per_launch(choice, p) * tiles_of(choice.config, p) * split * choice.config.BM * choice.config.BN * 4;
}

namespace {

// Persistent blocks number their items, and the stages that they share, in 32 bits.
const char* why_persistent_illegal(const Choice& choice, const Problem& p, const DeviceInfo& device) {
  if (!is_persistent(choice.config) || p.empty()) return nullptr;
  if (tiles_of(choice.config, p) * choice.split_k > kMaxItems) return "too many tiles to number in 32 bits";
  const PersistentGrid grid = persistent_grid(choice, p, device.sm_count);
  if (grid.shared_tiles * ceil_div(p.k, choice.config.BK) > kMaxInt) return "k is too long to share by stream_k";
  return nullptr;
}

const char* why_cluster_illegal(const Choice& choice, const Problem& p, const DeviceLimits& limits) {
  if (choice.reduction != Reduction::cluster) return nullptr;
  if (!can_cluster(choice.config)) return "cluster needs the tile family and another load path than warp_specialized";
  if (limits.compute_capability < 90) return "cluster needs sm_90 or newer";
  if (choice.split_k < 2 || choice.split_k > kMostPerCluster) return "cluster needs split_k 2 to 8";
  if (shared_bytes(variant_of(choice, p, {})) > limits.shared_bytes_per_block)
    return "the partial tile needs more shared memory than a block can have";
  return nullptr;
}

// What the rules for a problem say of the products on copies.
std::string why_relaid_illegal(const Choice& choice, const Problem& p, const DeviceInfo& device, int64_t workspace) {
  if (choice.config.family != Family::tile) return "only the tile family gains by copies of its operands";
  if (const char* why = why_not_relaid(choice.relayout, p)) return why;
  const RelaidProduct product = relaid_product(choice.relayout, p);
  if (product.copy_bytes() > workspace)
    return "copies of its operands need " + std::to_string(product.copy_bytes()) + " bytes of workspace, " +
           std::to_string(workspace) + " are available";
  for (const Problem& part : {product.panel, product.last})
    if (std::string why = why_unfit(without_relayout(choice), part, device, workspace - product.copy_bytes()); !why.empty())
      return why + ", beside copies of " + std::to_string(product.copy_bytes()) + " bytes";
  return {};
}

}  // namespace

std::string why_illegal(const Choice& choice, const Problem& p, const DeviceInfo& device, int64_t workspace_available) {
  if (const char* why = why_invalid(choice.config, device.limits)) return why;
  return why_unfit(choice, p, device, workspace_available);
}

std::string why_unfit(const Choice& choice, const Problem& p, const DeviceInfo& device, int64_t workspace_available) {
  if (choice.reduction == Reduction::stream_k && (!is_persistent(choice.config) || choice.split_k != 1))
    return "stream_k needs persistent blocks (load warp_specialized) and split_k 1";
  // The kernel counts in 32 bits and rounds up to whole tiles.
  const int64_t limit = kMaxInt - 1024;
  if (p.m > limit || p.n > limit || p.k > limit || tiles_of(choice.config, p) > kMaxInt)
    return "a dimension does not fit 32 bits";
  if (const char* why = why_cluster_illegal(choice, p, device.limits)) return why;
  if (choice.config.family == Family::batch) {
    if (choice.split_k != 1) return "the batch family does not split k";
    if (p.m > choice.config.BM || p.n > choice.config.BN) return "the batch family needs m <= BM and n <= BN";
  }
  if (choice.split_k < 1 || choice.split_k > kMaxGridYZ) return "split_k must lie between 1 and 65535";
  if (choice.relayout != Relayout::none && !p.empty()) return why_relaid_illegal(choice, p, device, workspace_available);
  if (const char* why = why_persistent_illegal(choice, p, device)) return why;
  const int64_t bytes = workspace_bytes(choice, p, device.sm_count);
  if (bytes == 0) return {};
  if (choice.split_k > 1 && tiles_of(choice.config, p) > kMaxTickets) return "too many tiles to split k";
  if (bytes > workspace_available)
    return "needs " + std::to_string(bytes) + " bytes of workspace, " + std::to_string(workspace_available) +
           " are available";
  return {};
}

}  // namespace gemm
