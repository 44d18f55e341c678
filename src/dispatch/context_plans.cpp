// Which candidate serves a problem, made ready to run.
#include <algorithm>

#include "dispatch/context.h"
#include "dispatch/explain.h"
#include "dispatch/reproducible.h"
#include "kernels/kernel_spec.h"
#include "kernels/launch_arithmetic.h"

namespace gemm {
namespace {

bool is_cublas(const Candidate& candidate) { return candidate.use_cublas; }

Decision only_cublas() { return {{{.rule = Rule::cublas, .use_cublas = true}}, {}}; }

// Dimensions in 32 bits, and C, whatever the batch, in 64 bits of addresses.
bool is_countable(const Problem& p) {
  const double floats_of_c = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.batch);
  return std::max({p.m, p.n, p.k}) <= kMaxInt && floats_of_c <= 0x1p61;
}

// None of our kernels may serve such a problem; its tiles and stages, times others, need not even fit 64 bits.
Decision beyond_counting() {
  Decision decision = only_cublas();
  decision.rejected.push_back("own kernels: a dimension does not fit 32 bits, or C 64 bits of addresses");
  return decision;
}

// Matrices and scalars that the call leaves on the GPU are read where they are (build_plan), so a choice has to be legal
// without its copies: the whole product at once may need more than its panels.
void drop_relayouts(Decision& decision, const Problem& problem, const DeviceInfo& device, int64_t workspace) {
  for (Candidate& candidate : decision.candidates) candidate.choice = without_relayout(candidate.choice);
  std::erase_if(decision.candidates, [&](const Candidate& candidate) {
    return !candidate.use_cublas && !why_illegal(candidate.choice, problem, device, workspace).empty();
  });
}

int64_t tickets_of(const TilePlan& plan, int sm_count) {
  const KernelConfig& config = plan.choice.config;
  // The tiles of the last two waves at most.
  if (plan.choice.reduction == Reduction::stream_k) return int64_t{2} * sm_count * config.min_blocks;
  if (plan.choice.split_k == 1 || plan.choice.reduction != Reduction::ticket) return 0;
  return plan.matrices * plan.args.tile.tiles_m * plan.args.tile.tiles_n;
}

}  // namespace

Status Context::explain(const Problem& problem, const Operands& operands, std::string& text) {
  if (const std::string why = why_refused(problem); !why.empty()) return {GEMM_INVALID_ARGUMENT, why};
  if (problem.empty() || problem.k == 0) {
    text = "problem    " + to_string(problem) + "\nrule       " +
           (problem.empty() ? "empty: nothing is launched" : "k is 0: C = beta * C by the scale kernel") + "\n";
    return {};
  }
  const std::shared_lock<std::shared_mutex> lock(setup_);
  std::shared_ptr<const Plan> plan;
  Status planned = plan_for(PlanKey(problem, call_kind(operands)), operands, plan, nullptr);
  if (planned.ok()) text = gemm::explain(problem, plan->candidate, table_ ? table_source_ : "none", plan->others);
  return planned;
}

Status Context::plan_for(const PlanKey& key, const Operands& operands, std::shared_ptr<const Plan>& plan, bool* is_new) {
  plan = plans_.find(key);
  if (plan) return {};
  std::shared_ptr<Plan> made;
  Status status = make_plan(key, operands, made);
  if (!status.ok()) return status;
  plan = plans_.remember(key, std::move(made));
  if (is_new) *is_new = true;
  return {};
}

Status Context::make_plan(const PlanKey& key, const Operands& operands, std::shared_ptr<Plan>& plan) {
  const Decision decision = decide(key.problem, operands, without_workspace(key.kind) ? 0 : streams_.workspace_bytes());
  std::vector<std::string> failures;
  for (const Candidate& candidate : decision.candidates) {
    if (plan) {
      plan->others.push_back(to_string(candidate));
      continue;
    }
    Result<Plan> bound = bind(candidate, key, operands);
    if (bound) {
      plan = std::make_shared<Plan>(std::move(*bound));
      plan->others = decision.rejected;
      plan->others.insert(plan->others.end(), failures.begin(), failures.end());
    } else {
      failures.push_back(to_string(candidate) + ": " + bound.error());
    }
  }
  if (plan) {
    if (plan->candidate.rule == Rule::cublas && !failures.empty())
      std::call_once(said_no_kernels_,
                     [&] { log_.warn("cuBLAS serves where no kernel can be built: " + failures.front()); });
    return {};
  }
  if (failures.empty()) failures = decision.rejected;
  std::string message = "nothing can serve " + to_string(key.problem) + " on " + device_->info().name;
  for (const std::string& failure : failures) message += "; " + failure;
  return {GEMM_NOT_SUPPORTED, message};
}

Decision Context::decide(const Problem& problem, const Operands& operands, int64_t workspace) {
  if (policy_ == GEMM_POLICY_CUBLAS_ONLY) return only_cublas();
  if (policy_ == GEMM_POLICY_REPRODUCIBLE) return decide_reproducible(problem, workspace);
  Decision decision = is_countable(problem) ? selector_->choose(problem, workspace) : beyond_counting();
  if (operands.indirect.any()) drop_relayouts(decision, problem, device_->info(), workspace);
  if (policy_ == GEMM_POLICY_TUNED_ONLY) std::erase_if(decision.candidates, is_cublas);
  // Whether A and B are read where alpha on the device is 0 is for our kernels to say.
  if (operands.indirect.scalars)
    std::stable_partition(decision.candidates.begin(), decision.candidates.end(),
                          [](const Candidate& candidate) { return !is_cublas(candidate); });
  return decision;
}

Decision Context::decide_reproducible(const Problem& problem, int64_t workspace) const {
  Decision decision;
  for (const Choice& choice : reproducible_choices(problem)) {
    const std::string why = why_illegal(choice, problem, device_->info(), workspace);
    if (why.empty())
      decision.candidates.push_back({.rule = Rule::reproducible, .choice = choice});
    else
      decision.rejected.push_back(to_string(choice) + " (reproducible): " + why);
  }
  if (decision.candidates.empty() && decision.rejected.empty())
    decision.rejected.push_back("no kernel reproduces a product of this size");
  return decision;
}

void Context::keep(const std::shared_ptr<Kernel>& kernel) {
  if (!kernel) return;
  const std::lock_guard<std::mutex> lock(kernels_mutex_);
  kernels_.insert(kernel);
}

Result<Plan> Context::bind(const Candidate& candidate, const PlanKey& key, const Operands& operands) {
  Plan plan;
  plan.candidate = candidate;
  if (candidate.use_cublas && cublas_is_callers_) return plan;
  if (candidate.use_cublas && operands.epilogue != Epilogue::none) return Failure{kNoEpilogue};
  if (candidate.use_cublas) {
    const Result<Cublas*> opened = cublas();
    if (!opened) return Failure{opened.error()};
    plan.cublas = *opened;
    plan.workspace_bytes = without_workspace(key.kind) ? 0 : streams_.workspace_bytes();
    return plan;
  }
  Result<TilePlan> tile = build_plan(*device_, candidate.choice, key.problem, operands);
  if (!tile) return Failure{tile.error()};
  plan.tile = std::move(*tile);
  keep(plan.tile.tile);
  keep(plan.tile.reduce);
  if (plan.tile.relaid) keep(plan.tile.relaid->copy);
  plan.workspace_bytes = workspace_bytes(candidate.choice, key.problem, device_->info().sm_count);
  plan.tickets = tickets_of(plan.tile, device_->info().sm_count);
  return plan;
}

// To the log and the record, once for each shape.
void Context::tell_new_plan(const Problem& problem, const Plan& plan) {
  const Epilogue epilogue = plan.tile.variant.epilogue;
  const std::string then = epilogue == Epilogue::none ? "" : std::string(", then ") + to_string(epilogue);
  if (log_.wants(LogLevel::info)) log_.info(to_string(problem) + ": " + to_string(plan.candidate) + then);
  if (!record_ || selector_->find_point(problem)) return;
  if (const Result<bool> recorded = record_->add(problem); !recorded) log_.warn(recorded.error());
}

Result<const Kernel*> Context::scale_kernel(const Operands& operands) {
  const size_t number = static_cast<size_t>(operands.epilogue) * 2 + operands.indirect.any();
  std::atomic<const Kernel*>& known = scale_known_[number];
  if (const Kernel* kernel = known.load(std::memory_order_acquire)) return kernel;
  const std::lock_guard<std::mutex> lock(first_need_);
  if (!scale_kernels_[number]) {
    Result<std::shared_ptr<Kernel>> built = device_->build(scale_spec_for(operands));
    if (!built) return Failure{built.error()};
    scale_kernels_[number] = *built;
  }
  known.store(scale_kernels_[number].get(), std::memory_order_release);
  return static_cast<const Kernel*>(scale_kernels_[number].get());
}

Result<Cublas*> Context::cublas() {
  if (cublas_is_callers_) return Failure{"cuBLAS is left to the caller"};
  const std::lock_guard<std::mutex> lock(first_need_);
  if (cublas_) return cublas_.get();
  if (cublas_missing_.empty()) {
    Result<std::unique_ptr<Cublas>> opened = Cublas::open(*device_);
    if (opened)
      cublas_ = std::move(*opened);
    else
      cublas_missing_ = opened.error();
  }
  if (!cublas_) return Failure{cublas_missing_};
  return cublas_.get();
}

}  // namespace gemm
