// Remembered plans: for each problem and alignment of its pointers, what serves it.
#pragma once

#include <cstddef>
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
  Candidate candidate;
  TilePlan tile;                    // unless candidate.use_cublas
  Cublas* cublas = nullptr;         // where candidate.use_cublas
  int64_t workspace_bytes = 0;      // for the partial tiles, 0 where k is not split; or what cuBLAS gets
  std::vector<std::string> others;  // what was passed over or would have come next, for people
};

// What the choice of a compiled variant depends on. The values of alpha and beta and the stream are free.
struct PlanKey {
  Problem problem;
  int vec_a = 4, vec_b = 4;  // floats that the pointers alone allow to load at once
  bool device_scalars = false, pointer_arrays = false;
  bool without_workspace = false;  // where there is none to be had

  PlanKey(const Problem& problem, const Operands& operands, bool without_workspace = false);
  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

struct PlanKeyHash {
  size_t operator()(const PlanKey& key) const;
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

}  // namespace gemm
