#include "dispatch/plan_memory.h"

#include <mutex>

namespace gemm {
namespace {

int pointer_vector(const void* pointer) { return widest_vector(pointer, 0, 1, 0, 1); }

// Strides of a single matrix mean nothing; one key serves them all.
Problem without_unused(Problem p) {
  if (p.batch == 1) p.stride_a = p.stride_b = p.stride_c = 0;
  return p;
}

}  // namespace

PlanKey::PlanKey(const Problem& problem, const Operands& operands)
    : problem(without_unused(problem)), vec_a(pointer_vector(operands.a)), vec_b(pointer_vector(operands.b)) {}

size_t PlanKeyHash::operator()(const PlanKey& key) const {
  const Problem& p = key.problem;
  const auto small = static_cast<int64_t>(p.op_a) | static_cast<int64_t>(p.op_b) << 1 | key.vec_a << 2 | key.vec_b << 5;
  uint64_t hash = 0;
  for (const int64_t value : {p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.batch, p.stride_a, p.stride_b, p.stride_c, small}) {
    // Multiplying by an odd constant and folding the high bits down spreads small numbers over all bits.
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return hash;
}

std::shared_ptr<const Plan> PlanMemory::find(const PlanKey& key) const {
  const std::shared_lock<std::shared_mutex> lock(mutex_);
  const auto found = plans_.find(key);
  return found == plans_.end() ? nullptr : found->second;
}

std::shared_ptr<const Plan> PlanMemory::remember(const PlanKey& key, std::shared_ptr<const Plan> plan) {
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  if (plans_.size() >= kMaxPlans) plans_.clear();
  return plans_.emplace(key, std::move(plan)).first->second;
}

void PlanMemory::clear() {
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  plans_.clear();
}

}  // namespace gemm
