#include "dispatch/plan_memory.h"

#include <mutex>

namespace gemm {
namespace {

int pointer_vector(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  return address % 16 == 0 ? 4 : address % 8 == 0 ? 2 : 1;
}

}  // namespace

PlanKey::PlanKey(const Problem& of_problem, const Operands& operands, bool no_workspace)
    : problem(of_problem),
      vec_a(pointer_vector(operands.a)),
      vec_b(pointer_vector(operands.b)),
      device_scalars(operands.indirect.scalars),
      pointer_arrays(operands.indirect.arrays),
      without_workspace(no_workspace) {
  // Strides of a single matrix mean nothing; one key serves them all.
  if (problem.batch == 1) problem.stride_a = problem.stride_b = problem.stride_c = 0;
}

// Sums of products with odd constants, which the processor computes side by side; the high bits of the sum depend on all of
// them, so they are folded down.
size_t PlanKeyHash::operator()(const PlanKey& key) const {
  const Problem& p = key.problem;
  const auto word = [](int64_t value) { return static_cast<uint64_t>(value); };
  const uint64_t small = word(p.op_a == Op::T) | word(p.op_b == Op::T) << 1 | word(key.vec_a) << 2 | word(key.vec_b) << 5 |
                         word(key.device_scalars) << 8 | word(key.pointer_arrays) << 9 | word(key.without_workspace) << 10;
  const uint64_t sizes = word(p.m) * 0x9e3779b97f4a7c15u + word(p.n) * 0xc2b2ae3d27d4eb4fu + word(p.k) * 0x165667b19e3779f9u;
  const uint64_t layout =
      word(p.lda) * 0xd6e8feb86659fd93u + word(p.ldb) * 0xa0761d6478bd642fu + word(p.ldc) * 0xe7037ed1a0b428dbu;
  const uint64_t batch = word(p.batch) * 0x8ebc6af09c88c6e3u + word(p.stride_a) * 0x589965cc75374cc3u +
                         word(p.stride_b) * 0x1d8e4e27c47d124fu + word(p.stride_c) * 0xeb44accab455d165u;
  uint64_t hash = sizes + layout + batch + small * 0x94d049bb133111ebu;
  hash ^= hash >> 32;
  return hash * 0x9e3779b97f4a7c15u >> 16;
}

std::shared_ptr<const Plan> PlanMemory::find(const PlanKey& key) const {
  const std::shared_lock<std::shared_mutex> lock(mutex_);
  const auto found = plans_.find(key);
  return found == plans_.end() ? nullptr : found->second;
}

std::shared_ptr<const Plan> PlanMemory::remember(const PlanKey& key, std::shared_ptr<const Plan> plan) {
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  return plans_.emplace(key, std::move(plan)).first->second;
}

bool PlanMemory::full() const {
  const std::shared_lock<std::shared_mutex> lock(mutex_);
  return plans_.size() >= kMaxPlans;
}

void PlanMemory::clear() {
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  plans_.clear();
}

}  // namespace gemm
