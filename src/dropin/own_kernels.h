// Remembers which problems libdispatch serves with kernels of its own, and which it would hand to cuBLAS.
#pragma once

#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "dispatch/context.h"
#include "dispatch/plan_memory.h"
#include "dropin/call.h"

namespace gemm::dropin {

// Whether the text of Context::explain says that cuBLAS serves the problem.
bool says_cublas(const std::string& explanation);

// For one context. Thread-safe. When full it starts afresh, which costs a question to the context for each problem.
class OwnKernels {
 public:
  // False where dispatch would choose cuBLAS, or cannot serve the problem at all. The first question about a problem makes
  // dispatch choose and compile.
  bool serve(Context& context, const Call& call);

 private:
  static constexpr size_t kMaxProblems = 4096;

  std::shared_mutex mutex_;
  std::unordered_map<PlanKey, bool, PlanKeyHash> known_;
};

}  // namespace gemm::dropin
