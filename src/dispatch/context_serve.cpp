// A call's way from its arguments to the launch. What a thread knows already is at the top of it: that is the hot path.
#include <algorithm>
#include <limits>

#include "dispatch/context.h"
#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

constexpr int64_t kMaxInt = std::numeric_limits<int>::max();

Status invalid(const std::string& message) { return {GEMM_INVALID_ARGUMENT, message}; }

Status check_pointer(const char* name, const void* pointer, size_t alignment, bool may_be_null) {
  if (!pointer && !may_be_null) return invalid(std::string(name) + " is a null pointer but would be accessed");
  if (reinterpret_cast<uintptr_t>(pointer) % alignment != 0)
    return invalid(std::string(name) + " is not a multiple of " + std::to_string(alignment) + " bytes as an address");
  return {};
}

// `scales`: A and B are not read. Alpha on the device may turn out to be 0 too, but nobody knows here.
Status check_operands(const Operands& o, bool scales) {
  const Indirection& i = o.indirect;
  const size_t alignment = i.arrays ? sizeof(float*) : sizeof(float);
  Status checked = check_pointer("A", i.arrays ? static_cast<const void*>(i.a) : o.a, alignment, scales);
  if (checked.ok()) checked = check_pointer("B", i.arrays ? static_cast<const void*>(i.b) : o.b, alignment, scales);
  if (checked.ok()) checked = check_pointer("C", i.arrays ? static_cast<const void*>(i.c) : o.c, alignment, false);
  if (checked.ok() && i.scalars) checked = check_pointer("alpha", i.alpha, sizeof(float), false);
  if (checked.ok() && i.scalars) checked = check_pointer("beta", i.beta, sizeof(float), false);
  if (checked.ok() && has_bias(o.epilogue)) checked = check_pointer("the bias", o.bias.data, sizeof(float), false);
  return checked;
}

// The same without a story, for products.
bool may_run(const Operands& o) {
  if (o.indirect.any() || has_bias(o.epilogue)) return check_operands(o, false).ok();
  const auto address = [](const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); };
  return o.a && o.b && o.c && (address(o.a) | address(o.b) | address(o.c)) % sizeof(float) == 0;
}

bool only_scales(const Problem& problem, const Operands& operands) {
  return problem.k == 0 || (operands.alpha == 0 && !operands.indirect.scalars);
}

size_t kind_of(const Plan& plan) {
  return static_cast<size_t>(plan.candidate.use_cublas ? Rule::cublas : plan.candidate.rule);
}

// In captures. Its documentation asks for 16 KiB at least.
constexpr int64_t kLeastForCublas = int64_t{64} << 10;

// cuBLAS does not say what it needs. Half of a stream's workspace is what it takes by itself on the largest GPUs.
CaptureNeed need_of(const Plan& plan, bool indispensable) {
  if (!plan.cublas) return {plan.workspace_bytes, plan.workspace_bytes, plan.tickets, indispensable};
  const int64_t least = std::min(plan.workspace_bytes, kLeastForCublas);
  return {std::max(plan.workspace_bytes / 2, least), least, 0, false};
}

Status launch_failed(const std::string& why) { return {GEMM_LAUNCH_FAILED, why}; }

}  // namespace

Status Context::sgemm(const Problem& problem, const Operands& operands, Stream stream) {
  {
    const ThreadMemories::Mine mine = threads_.mine();
    const ThreadMemory::Visit visit(*mine);
    StreamSet* set = nullptr;
    if (const Plan* plan = known_plan(*mine, problem, operands, stream, set)) {
      Status launched = launch(*plan, problem, operands, stream, set);
      if (launched.ok()) mine->count(kind_of(*plan));
      return launched;
    }
  }
  if (const std::string why = why_refused(problem); !why.empty()) return invalid(why);
  if (problem.empty()) return {};
  const bool scales = only_scales(problem, operands);
  if (Status checked = check_operands(operands, scales); !checked.ok()) return checked;
  return scales ? scale(problem, operands, stream) : serve({problem, operands, stream, Action::launch});
}

// The plan, with the stream's workspace where it needs one, if the calling thread knows both. A known plan says that the
// problem has been checked; a captured stream's workspace belongs to the graph.
const Plan* Context::known_plan(ThreadMemory& mine, const Problem& problem, const Operands& operands, Stream stream,
                                StreamSet*& set) const {
  const uint64_t generation = generation_.load(std::memory_order_seq_cst);
  const Plan* plan = mine.find(problem, call_kind(operands), generation);
  if (!plan || only_scales(problem, operands) || !may_run(operands)) return nullptr;
  if (plan->workspace_bytes == 0) return plan;
  set = mine.find_set(stream, generation);
  return set && device_->capture_id(stream) == 0 ? plan : nullptr;
}

Status Context::prepare(const Problem& problem, const Operands& operands, Stream stream) {
  if (const std::string why = why_refused(problem); !why.empty()) return invalid(why);
  if (problem.empty()) return {};
  if (!operands.indirect.arrays)
    for (const Status& checked :
         {check_pointer("A", operands.a, sizeof(float), true), check_pointer("B", operands.b, sizeof(float), true)})
      if (!checked.ok()) return checked;
  const Result<const Kernel*> scale = scale_kernel(operands);
  const bool cublas_may = policy_ == GEMM_POLICY_AUTO || policy_ == GEMM_POLICY_CUBLAS_ONLY;
  if (!scale && !(cublas_may && cublas())) return {GEMM_NOT_SUPPORTED, scale.error()};
  if (problem.k == 0) return {};
  return serve({problem, operands, stream, Action::only_prepare});
}

Status Context::serve(Call call) {
  call.capture = device_->capture_id(call.stream);
  bool is_new = false;
  for (;;) {
    const ThreadMemories::Mine mine = threads_.mine();
    std::shared_lock<std::shared_mutex> lock(setup_);
    if (plans_.full()) {
      lock.unlock();
      const Change change(*this);
      plans_.clear();
      continue;
    }
    const PlanKey key(call.problem, call_kind(call.operands, call.without_workspace));
    std::shared_ptr<const Plan> plan;
    bool made = false, must_be_told = false;
    if (Status planned = plan_for(key, call.operands, plan, &made); !planned.ok()) return planned;
    if (made) tell_new_plan(call.problem, *plan);
    is_new = is_new || made;

    Result<StreamSet*> set = set_for(call, *plan, *mine, must_be_told);
    if (!set && !plan->cublas) {
      lock.unlock();
      if (call.capture != 0)
        do_without_workspace(call, set.error());
      else
        give_up_workspace(set.error());
      continue;
    }
    if (must_be_told) {
      lock.unlock();
      const Change change(*this);
      streams_.tell_several_threads(call.stream);
      continue;
    }
    // Where there is none for cuBLAS, it takes its own.
    StreamSet* const used = set ? *set : nullptr;
    const uint64_t generation = generation_.load();
    if (!call.without_workspace) mine->remember(key, plan.get(), generation);
    if (used && call.capture == 0) mine->remember_set(call.stream, used, generation);
    if (call.action == Action::only_prepare) return {};
    Status launched = launch(*plan, call.problem, call.operands, call.stream, used);
    if (launched.ok()) mine->count(kind_of(*plan));
    if (launched.ok() && is_new) mine->count(CallCounts::kNewPlans);
    return launched;
  }
}

// Null where the plan needs none.
Result<StreamSet*> Context::set_for(const Call& call, const Plan& plan, const ThreadMemory& mine, bool& must_be_told) {
  StreamSet* const none = nullptr;
  if (plan.workspace_bytes == 0) return none;
  if (call.capture != 0 && !streams_.is_callers()) {
    // Nothing is captured by preparing.
    if (call.action == Action::only_prepare) return none;
    // No other kernel gives the same bits.
    const bool indispensable = policy_ == GEMM_POLICY_REPRODUCIBLE;
    return captures_.get(call.stream, call.capture, need_of(plan, indispensable), streams_.workspace_bytes());
  }
  const Result<StreamMemory::Answer> got = streams_.get(call.stream, &mine);
  if (!got) return Failure{got.error()};
  must_be_told = got->must_be_told;
  return got->set;
}

void Context::do_without_workspace(Call& call, const std::string& why) {
  call.without_workspace = true;
  std::call_once(said_no_capture_memory_,
                 [&] { log_.warn("no workspace for more captured products, so that k is not split in them: " + why); });
}

void Context::give_up_workspace(const std::string& why) {
  {
    const Change change(*this);
    if (streams_.workspace_bytes() == 0) return;
    plans_.clear();
    streams_.give_up();
  }
  log_.warn("no workspace, so that k is not split any more: " + why);
}

Status Context::launch(const Plan& plan, const Problem& problem, const Operands& operands, Stream stream, StreamSet* set) {
  if (plan.candidate.use_cublas && !plan.cublas) return {GEMM_NOT_SUPPORTED, "cuBLAS is left to the caller"};
  SetUse use(*device_, set, stream);
  float* const workspace = set ? set->workspace : nullptr;
  if (plan.cublas) {
    const Cublas::Workspace given{workspace, set ? static_cast<size_t>(set->workspace_bytes) : 0};
    const Result<bool> enqueued = plan.cublas->sgemm(problem, operands, stream, given);
    if (!enqueued) return launch_failed(enqueued.error());
  } else {
    const Result<bool> launched =
        launch_plan(*device_, plan.tile, problem, operands, workspace, set ? set->tickets : nullptr, stream);
    if (!launched) return launch_failed(launched.error());
  }
  use.done();
  return {};
}

Status Context::scale(const Problem& problem, const Operands& operands, Stream stream) {
  if (policy_ == GEMM_POLICY_CUBLAS_ONLY) return scale_by_cublas(problem, operands, stream);
  if (operands.beta != 1 || operands.indirect.scalars || operands.epilogue != Epilogue::none) {
    const Result<const Kernel*> kernel = scale_kernel(operands);
    const bool too_long = problem.m > kMaxInt || problem.n > kMaxInt;
    if (kernel && !too_long) {
      const Result<bool> launched = launch_scale(*device_, **kernel, problem, operands, stream);
      if (!launched) return launch_failed(launched.error());
    } else if (policy_ == GEMM_POLICY_AUTO) {
      return scale_by_cublas(problem, operands, stream);
    } else {
      return {GEMM_NOT_SUPPORTED, "nothing but cuBLAS can scale C of " + to_string(problem) + ": " +
                                      (kernel ? "a dimension does not fit 32 bits" : kernel.error())};
    }
  }
  threads_.mine()->count(CallCounts::kScaled);
  return {};
}

// As a product with k = 0, of which cuBLAS reads C only; but it looks at leading dimensions and pointers that we do not
// need. It has nothing to do with workspace here.
Status Context::scale_by_cublas(const Problem& problem, const Operands& operands, Stream stream) {
  const Result<Cublas*> opened = operands.epilogue == Epilogue::none ? cublas() : Failure{kNoEpilogue};
  if (!opened) return {GEMM_NOT_SUPPORTED, "nothing can serve " + to_string(problem) + ": " + opened.error()};
  Problem scaling = problem;
  scaling.k = 0;
  scaling.lda = std::max<int64_t>(1, scaling.rows_a());
  scaling.ldb = std::max<int64_t>(1, scaling.rows_b());
  Operands pointers = operands;
  pointers.a = pointers.b = operands.c;
  pointers.indirect.a = pointers.indirect.b = operands.indirect.c;
  const Result<bool> enqueued = (*opened)->sgemm(scaling, pointers, stream, {});
  if (!enqueued) return launch_failed(enqueued.error());
  threads_.mine()->count(static_cast<size_t>(Rule::cublas));
  return {};
}

}  // namespace gemm
