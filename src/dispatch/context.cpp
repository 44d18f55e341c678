// A context's setup: table, workspace, policy, statistics.
#include "dispatch/context.h"

#include <cstdlib>
#include <limits>

#include "dispatch/bundle.h"
#include "dispatch/explain.h"
#include "dispatch/table_search.h"

namespace gemm {
namespace {

// All warnings about one table as one line.
std::string joined(const std::vector<std::string>& warnings) {
  if (warnings.empty()) return {};
  if (warnings.size() == 1) return warnings.front();
  return warnings.front() + " (and " + std::to_string(warnings.size() - 1) + " more)";
}

Status invalid(const std::string& message) { return {GEMM_INVALID_ARGUMENT, message}; }

Log make_log(ContextOptions& options) {
  std::string complaint;
  const LogLevel level = options.log_level ? *options.log_level : log_level_from_environment(&complaint);
  Log log(level, std::move(options.warn), std::move(options.inform));
  if (!complaint.empty()) log.warn(complaint);
  return log;
}

const char* name_of(gemm_policy_t policy) {
  switch (policy) {
    case GEMM_POLICY_TUNED_ONLY: return "tuned only";
    case GEMM_POLICY_CUBLAS_ONLY: return "cuBLAS only";
    case GEMM_POLICY_REPRODUCIBLE: return "reproducible";
    default: return "auto";
  }
}

}  // namespace

Context::Context(std::unique_ptr<Device> device, ContextOptions options)
    : device_(std::move(device)),
      cublas_is_callers_(options.cublas_is_callers),
      log_(make_log(options)),
      selector_(std::make_unique<const Selector>(nullptr, device_->info())),
      streams_(*device_),
      captures_(*device_) {
  if (const char* path = std::getenv("GEMM_RECORD"); path && *path) record_.emplace(path);
  if (options.find_table) find_table();
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
    if (!loaded.ok()) log_.warn(loaded.message + "; default kernels are used (from GEMM_TABLE)");
    return;
  }
  std::vector<std::string> warnings;
  std::optional<FoundTable> found = search_tables(config_folders(), device_->info(), &warnings);
  if (found)
    adopt(std::move(found->table), found->path, std::move(warnings));
  else if (!warnings.empty())
    log_.warn(joined(warnings) + "; default kernels are used");
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
  if (log_.wants(LogLevel::debug)) log_.debug("table " + source);
  auto adopted = std::make_unique<const Table>(std::move(table));
  auto selector = std::make_unique<const Selector>(adopted.get(), device_->info());
  {
    const Change change(*this);
    plans_.clear();
    selector_ = std::move(selector);
    table_ = std::move(adopted);
    table_source_ = std::move(source);
  }
  if (!warnings.empty()) log_.warn(joined(warnings));
}

Status Context::set_workspace(void* workspace, int64_t bytes) {
  if (bytes < 0) return invalid("the workspace is too large");
  if (reinterpret_cast<uintptr_t>(workspace) % 16 != 0)
    return invalid("the workspace is not a multiple of 16 bytes as an address");
  const Change change(*this);
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
  const Decision decision = decide(problem, {}, std::numeric_limits<int64_t>::max());
  for (const Candidate& candidate : decision.candidates) {
    if (candidate.use_cublas && !cublas()) continue;
    if (!candidate.use_cublas) bytes = workspace_bytes(candidate.choice, problem, device_->info().sm_count);
    break;
  }
  return {};
}

Status Context::release_stream(Stream stream) {
  const Change change(*this);
  streams_.release(stream);
  return {};
}

void Context::set_policy(gemm_policy_t policy) {
  {
    const Change change(*this);
    plans_.clear();
    policy_ = policy;
  }
  if (log_.wants(LogLevel::debug)) log_.debug(std::string("policy ") + name_of(policy));
}

gemm_statistics_t Context::statistics() {
  const std::lock_guard<std::mutex> lock(statistics_mutex_);
  const CallCounts counts = threads_.counts();
  const auto since = [&](size_t kind) { return counts.of[kind] - counted_before_.of[kind]; };
  const auto of = [&](Rule rule) { return since(static_cast<size_t>(rule)); };
  gemm_statistics_t statistics{};
  statistics.exact = of(Rule::exact);
  statistics.predicted = of(Rule::predicted);
  statistics.nearest = of(Rule::nearest);
  statistics.fallback = of(Rule::fallback);
  statistics.reproducible = of(Rule::reproducible);
  statistics.cublas = of(Rule::cublas);
  statistics.scaled = since(CallCounts::kScaled);
  statistics.new_plans = since(CallCounts::kNewPlans);
  return statistics;
}

void Context::reset_statistics() {
  const std::lock_guard<std::mutex> lock(statistics_mutex_);
  counted_before_ = threads_.counts();
}

}  // namespace gemm
