#include "dispatch/plan_memory.h"

#include <mutex>

namespace gemm {
PlanKey::PlanKey(const Problem& of_problem, CallKind of_kind) : problem(of_problem), kind(of_kind) {
  // Strides of a single matrix mean nothing; one key serves them all.
  if (problem.batch == 1) problem.stride_a = problem.stride_b = problem.stride_c = 0;
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
