#include "dispatch/context.h"

#include <cstdio>
#include <cstdlib>
#include <limits>

#include "dispatch/bundle.h"
#include "dispatch/explain.h"
#include "dispatch/table_search.h"
#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

constexpr int64_t kMaxInt = std::numeric_limits<int>::max();

void warn_on_stderr(const std::string& text) { std::fprintf(stderr, "gemm: warning: %s\n", text.c_str()); }

// All warnings about one table as one line.
std::string joined(const std::vector<std::string>& warnings) {
  if (warnings.empty()) return {};
  if (warnings.size() == 1) return warnings.front();
  return warnings.front() + " (and " + std::to_string(warnings.size() - 1) + " more)";
}

Status invalid(const std::string& message) { return {GEMM_INVALID_ARGUMENT, message}; }

Status check_pointer(const char* name, const void* pointer, bool may_be_null) {
  if (!pointer && !may_be_null) return invalid(std::string(name) + " is a null pointer but would be accessed");
  if (reinterpret_cast<uintptr_t>(pointer) % sizeof(float) != 0)
    return invalid(std::string(name) + " is not a multiple of 4 bytes as an address");
  return {};
}

bool only_scales(const Problem& problem, const Operands& operands) { return problem.k == 0 || operands.alpha == 0; }

}  // namespace

Context::Context(std::unique_ptr<Device> device, ContextOptions options)
    : device_(std::move(device)), options_(std::move(options)), streams_(*device_) {
  if (!options_.warn) options_.warn = warn_on_stderr;
  if (options_.find_table) find_table();
}

Context::~Context() {
  try {
    device_->synchronize(nullptr);
  } catch (const Error&) {
    // The work has failed, which its owner sees on its stream; the memory is freed all the same.
  }
}

void Context::find_table() {
  if (const char* path = std::getenv("GEMM_TABLE"); path && *path) {
    const Status loaded = load_table(path);
    if (!loaded.ok()) options_.warn(loaded.message + "; default kernels are used (from GEMM_TABLE)");
    return;
  }
  std::vector<std::string> warnings;
  std::optional<FoundTable> found = search_tables(config_folders(), device_->info(), &warnings);
  if (found)
    adopt(std::move(found->table), found->path, std::move(warnings));
  else if (!warnings.empty())
    options_.warn(joined(warnings) + "; default kernels are used");
}

Status Context::load_table(const std::string& path) {
  std::vector<std::string> warnings;
  Result<LoadedTable> loaded = load_for_device(path, device_->info(), &warnings);
  if (!loaded) return {GEMM_TABLE_ERROR, loaded.error()};
  for (std::string& warning : warnings) warning.insert(0, "table '" + path + "': ");
  device_->use_cubins(loaded->kernels);
  adopt(std::move(loaded->table), path, std::move(warnings));
  return {};
}

void Context::adopt(Table table, const std::string& path, std::vector<std::string> warnings) {
  std::string source = describe_source(table, path, device_->info());
  if (match(table, device_->info()) == TableMatch::borrowed)
    warnings.push_back("table " + source + "; tune this GPU with gemm-tune");
  {
    const std::unique_lock<std::shared_mutex> lock(setup_);
    plans_.clear();
    table_ = std::make_unique<const Table>(std::move(table));
    table_source_ = std::move(source);
  }
  if (!warnings.empty()) options_.warn(joined(warnings));
}

Status Context::set_workspace(void* workspace, int64_t bytes) {
  if (bytes < 0) return invalid("the workspace is too large");
  if (reinterpret_cast<uintptr_t>(workspace) % 16 != 0)
    return invalid("the workspace is not a multiple of 16 bytes as an address");
  const std::unique_lock<std::shared_mutex> lock(setup_);
  plans_.clear();
  streams_.set_workspace(workspace, bytes);
  return {};
}

int64_t Context::workspace_size() {
  const std::shared_lock<std::shared_mutex> lock(setup_);
  return streams_.workspace_bytes();
}

Status Context::best_workspace(const Problem& problem, int64_t& bytes) {
  bytes = 0;
  if (const std::string why = why_refused(problem); !why.empty()) return invalid(why);
  if (problem.empty() || problem.k == 0) return {};
  const std::shared_lock<std::shared_mutex> lock(setup_);
  const Decision decision = choose(table_.get(), problem, device_->info(), std::numeric_limits<int64_t>::max());
  for (const Candidate& candidate : decision.candidates) {
    if (candidate.use_cublas && !cublas()) continue;
    if (!candidate.use_cublas) bytes = workspace_bytes(candidate.choice, problem, device_->info().sm_count);
    break;
  }
  return {};
}

Status Context::sgemm(const Problem& problem, const Operands& operands, Stream stream) {
  if (const std::string why = why_refused(problem); !why.empty()) return invalid(why);
  if (problem.empty()) return {};
  const bool scales = only_scales(problem, operands);
  for (const Status& checked : {check_pointer("A", operands.a, scales), check_pointer("B", operands.b, scales),
                                check_pointer("C", operands.c, false)})
    if (!checked.ok()) return checked;
  if (scales) return scale(problem, operands, stream);
  return serve(problem, operands, stream, Action::launch);
}

Status Context::prepare(const Problem& problem, const Operands& operands, Stream stream) {
  if (const std::string why = why_refused(problem); !why.empty()) return invalid(why);
  if (problem.empty()) return {};
  for (const Status& checked : {check_pointer("A", operands.a, true), check_pointer("B", operands.b, true)})
    if (!checked.ok()) return checked;
  const Result<std::shared_ptr<Kernel>> scale = scale_kernel();
  if (!scale && !cublas()) return {GEMM_NOT_SUPPORTED, scale.error()};
  if (problem.k == 0) return {};
  return serve(problem, operands, stream, Action::only_prepare);
}

Status Context::explain(const Problem& problem, const Operands& operands, std::string& text) {
  if (const std::string why = why_refused(problem); !why.empty()) return invalid(why);
  if (problem.empty() || problem.k == 0) {
    text = "problem    " + to_string(problem) + "\nrule       " +
           (problem.empty() ? "empty: nothing is launched" : "k is 0: C = beta * C by the scale kernel") + "\n";
    return {};
  }
  const std::shared_lock<std::shared_mutex> lock(setup_);
  std::shared_ptr<const Plan> plan;
  Status planned = plan_for(problem, operands, plan);
  if (planned.ok()) text = gemm::explain(problem, plan->candidate, table_ ? table_source_ : "none", plan->others);
  return planned;
}

Status Context::serve(const Problem& problem, const Operands& operands, Stream stream, Action action) {
  std::string no_workspace;
  {
    const std::shared_lock<std::shared_mutex> lock(setup_);
    Status served = serve_locked(problem, operands, stream, action, no_workspace);
    if (no_workspace.empty()) return served;
  }
  give_up_workspace(no_workspace);
  const std::shared_lock<std::shared_mutex> lock(setup_);
  return serve_locked(problem, operands, stream, action, no_workspace);
}

Status Context::serve_locked(const Problem& problem, const Operands& operands, Stream stream, Action action,
                             std::string& no_workspace) {
  std::shared_ptr<const Plan> plan;
  Status planned = plan_for(problem, operands, plan);
  if (!planned.ok()) return planned;
  std::shared_ptr<StreamSet> set;
  if (plan->candidate.use_cublas && action == Action::only_prepare) cublas_workspace(stream);
  if (plan->workspace_bytes > 0) {
    Result<std::shared_ptr<StreamSet>> got = streams_.get(stream);
    if (!got) {
      no_workspace = got.error();
      return {GEMM_OUT_OF_MEMORY, no_workspace};
    }
    set = std::move(*got);
  }
  return action == Action::launch ? launch(*plan, problem, operands, stream, set.get()) : Status{};
}

void Context::give_up_workspace(const std::string& why) {
  const std::unique_lock<std::shared_mutex> lock(setup_);
  if (streams_.workspace_bytes() == 0) return;
  plans_.clear();
  streams_.set_workspace(nullptr, 0);
  options_.warn("no workspace, so that k is not split any more: " + why);
}

Status Context::plan_for(const Problem& problem, const Operands& operands, std::shared_ptr<const Plan>& plan) {
  const PlanKey key(problem, operands);
  plan = plans_.find(key);
  if (plan) return {};
  std::shared_ptr<Plan> made;
  Status status = make_plan(problem, operands, made);
  if (status.ok()) plan = plans_.remember(key, std::move(made));
  return status;
}

Status Context::make_plan(const Problem& problem, const Operands& operands, std::shared_ptr<Plan>& plan) {
  Decision decision = choose(table_.get(), problem, device_->info(), streams_.workspace_bytes());
  std::vector<std::string> failures;
  for (const Candidate& candidate : decision.candidates) {
    if (plan) {
      plan->others.push_back(to_string(candidate));
      continue;
    }
    Result<Plan> bound = bind(candidate, problem, operands);
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
                     [&] { options_.warn("cuBLAS serves where no kernel can be built: " + failures.front()); });
    return {};
  }
  std::string message = "nothing can serve " + to_string(problem) + " on " + device_->info().name;
  for (const std::string& failure : failures) message += "; " + failure;
  return {GEMM_NOT_SUPPORTED, message};
}

Result<Plan> Context::bind(const Candidate& candidate, const Problem& problem, const Operands& operands) {
  Plan plan;
  plan.candidate = candidate;
  if (candidate.use_cublas) {
    const Result<Cublas*> opened = cublas();
    if (!opened) return Failure{opened.error()};
    return plan;
  }
  Result<TilePlan> tile = build_plan(*device_, candidate.choice, problem, operands);
  if (!tile) return Failure{tile.error()};
  plan.tile = std::move(*tile);
  plan.workspace_bytes = workspace_bytes(candidate.choice, problem, device_->info().sm_count);
  return plan;
}

Status Context::launch(const Plan& plan, const Problem& problem, const Operands& operands, Stream stream, StreamSet* set) {
  if (plan.candidate.use_cublas) return run_cublas(problem, operands, stream);
  std::unique_lock<std::mutex> alone;
  if (set) alone = std::unique_lock<std::mutex>(set->launching);
  const Result<bool> launched = launch_plan(*device_, plan.tile, problem, operands, set ? set->workspace : nullptr,
                                            set ? set->tickets.as<unsigned>() : nullptr, stream);
  if (!launched) return {GEMM_LAUNCH_FAILED, launched.error()};
  return {};
}

Status Context::scale(const Problem& problem, const Operands& operands, Stream stream) {
  if (operands.beta == 1) return {};
  const Result<std::shared_ptr<Kernel>> kernel = scale_kernel();
  if (!kernel || problem.m > kMaxInt || problem.n > kMaxInt) return run_cublas(problem, operands, stream);
  const Result<bool> launched = launch_scale(*device_, **kernel, problem, operands.c, operands.beta, stream);
  if (!launched) return {GEMM_LAUNCH_FAILED, launched.error()};
  return {};
}

Status Context::run_cublas(const Problem& problem, const Operands& operands, Stream stream) {
  const Result<Cublas*> opened = cublas();
  if (!opened) return {GEMM_NOT_SUPPORTED, "nothing can serve " + to_string(problem) + ": " + opened.error()};
  const std::shared_ptr<StreamSet> set = cublas_workspace(stream);
  std::unique_lock<std::mutex> alone;
  Cublas::Workspace workspace;
  if (set) {
    alone = std::unique_lock<std::mutex>(set->launching);
    workspace = {set->workspace, static_cast<size_t>(streams_.workspace_bytes())};
  }
  const Result<bool> enqueued = (*opened)->sgemm(problem, operands, stream, workspace);
  if (!enqueued) return {GEMM_LAUNCH_FAILED, enqueued.error()};
  return {};
}

// Null where there is no workspace, or no memory for it: then cuBLAS takes its own.
std::shared_ptr<StreamSet> Context::cublas_workspace(Stream stream) {
  if (streams_.workspace_bytes() == 0) return nullptr;
  Result<std::shared_ptr<StreamSet>> got = streams_.get(stream);
  return got ? std::move(*got) : nullptr;
}

Result<std::shared_ptr<Kernel>> Context::scale_kernel() {
  const std::lock_guard<std::mutex> lock(first_need_);
  if (scale_kernel_) return scale_kernel_;
  Result<std::shared_ptr<Kernel>> built = device_->build(scale_spec());
  if (built) scale_kernel_ = *built;
  return built;
}

Result<Cublas*> Context::cublas() {
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
