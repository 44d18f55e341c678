// Remembered plans: for each problem and alignment of its pointers, what serves it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "dispatch/cublas.h"
#include "dispatch/selector.h"
#include "kernels/launch.h"
#include "kernels/problem.h"

namespace gemm {

// A candidate that is ready to run.
struct Plan {
  TilePlan tile;  // unless candidate.use_cublas
  Candidate candidate;
  Cublas* cublas = nullptr;         // where candidate.use_cublas
  int64_t workspace_bytes = 0;      // for the partial tiles, 0 where k is not split; or what cuBLAS gets
  int64_t tickets = 0;              // of tiles whose blocks take turns
  std::vector<std::string> others;  // what was passed over or would have come next, for people
};

// What the choice of a compiled variant depends on beside the problem, as bits: the floats that the pointers allow to load
// at once, where scalars and matrices are found, the epilogue, and whether there is no workspace to be had. The values of
// alpha and beta, where the bias lies, and the stream are free.
using CallKind = uint32_t;
CallKind call_kind(const Operands& operands, bool without_workspace = false);

constexpr bool without_workspace(CallKind kind) { return kind >> 8 & 1; }

struct PlanKey {
  Problem problem;
  CallKind kind = 0;

  PlanKey(const Problem& problem, CallKind kind);
  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

size_t plan_hash(const Problem& problem, CallKind kind);
struct PlanKeyHash {
  size_t operator()(const PlanKey& key) const { return plan_hash(key.problem, key.kind); }
};

// Thread-safe. Holds kMaxPlans; whoever finds it full has to clear it, which costs a choice for each plan but no
// compilation.
class PlanMemory {
 public:
  static constexpr size_t kMaxPlans = 4096;

  std::shared_ptr<const Plan> find(const PlanKey& key) const;  // null when it is not there
  // Keeps the first plan when two threads made one at the same time; returns the one that is kept.
  std::shared_ptr<const Plan> remember(const PlanKey& key, std::shared_ptr<const Plan> plan);
  bool full() const;
  void clear();

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<PlanKey, std::shared_ptr<const Plan>, PlanKeyHash> plans_;
};

// ------------------------------------------------------------------------------------------------------------------------
// In the header because every call needs them.

inline CallKind call_kind(const Operands& operands, bool without_workspace) {
  // 0 for multiples of 16 bytes, 8 for those of 8, 4 for others.
  const auto alignment = [](const void* pointer) {
    const auto low = static_cast<CallKind>(reinterpret_cast<uintptr_t>(pointer) & 12);
    return low & 4 ? CallKind{4} : low;
  };
  return alignment(operands.a) | alignment(operands.b) << 2 | operands.indirect.scalars << 6 |
         operands.indirect.arrays << 7 | without_workspace << 8 | static_cast<CallKind>(operands.epilogue) << 9;
}

// Sums of products with odd constants, which the processor computes side by side; the high bits of the sum depend on all of
// them, so they are folded down.
inline size_t plan_hash(const Problem& p, CallKind kind) {
  const auto word = [](int64_t value) { return static_cast<uint64_t>(value); };
  const uint64_t small = kind << 2 | word(p.op_a == Op::T) | word(p.op_b == Op::T) << 1;
  const uint64_t sizes = word(p.m) * 0x9e3779b97f4a7c15u + word(p.n) * 0xc2b2ae3d27d4eb4fu + word(p.k) * 0x165667b19e3779f9u;
  const uint64_t layout =
      word(p.lda) * 0xd6e8feb86659fd93u + word(p.ldb) * 0xa0761d6478bd642fu + word(p.ldc) * 0xe7037ed1a0b428dbu;
  const uint64_t batch = word(p.batch) * 0x8ebc6af09c88c6e3u + word(p.stride_a) * 0x589965cc75374cc3u +
                         word(p.stride_b) * 0x1d8e4e27c47d124fu + word(p.stride_c) * 0xeb44accab455d165u;
  uint64_t hash = sizes + layout + batch + small * 0x94d049bb133111ebu;
  hash ^= hash >> 32;
  return hash * 0x9e3779b97f4a7c15u >> 16;
}

}  // namespace gemm
