// What a gemm_context_t is: one device with its table, remembered plans and workspaces, behind the C API.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "dispatch/capture_memory.h"
#include "dispatch/cublas.h"
#include "dispatch/log.h"
#include "dispatch/plan_memory.h"
#include "dispatch/selector.h"
#include "dispatch/shape_record.h"
#include "dispatch/stream_memory.h"
#include "dispatch/table.h"
#include "dispatch/thread_memory.h"
#include "gemm/gemm.h"
#include "kernels/device.h"

namespace gemm {

// Why a product with an epilogue has no cuBLAS to fall back to.
inline constexpr const char* kNoEpilogue = "cublasSgemm adds no bias and has no ReLU";

// A status with its story. Success allocates nothing.
struct Status {
  gemm_status code = GEMM_SUCCESS;
  std::string message;
  bool ok() const { return code == GEMM_SUCCESS; }
};

struct ContextOptions {
  bool find_table = true;                                    // look in the default places (table_search.h)
  std::function<void(const std::string&)> warn = nullptr;    // default: one line on stderr
  std::function<void(const std::string&)> inform = nullptr;  // what GEMM_LOG=info and debug add; default: the same
  std::optional<LogLevel> log_level = std::nullopt;          // default: as GEMM_LOG says
  bool cublas_is_callers = false;                            // who calls has a cuBLAS of its own: see Context::sgemm
};

// Thread-safe, as gemm.h says. A call with a known shape goes through sgemm() alone and takes no lock; everything else reads
// the shared memory under setup_, and what changes plans or workspace does so in a Change.
class Context {
 public:
  explicit Context(std::unique_ptr<Device> device, ContextOptions options = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Device& device() { return *device_; }

  Status load_table(const std::string& path);
  // With ContextOptions::cublas_is_callers a product for which cuBLAS is the choice is NOT_SUPPORTED, without a launch. Our
  // own cuBLAS never serves a product with an epilogue, since cublasSgemm has none.
  Status sgemm(const Problem& problem, const Operands& operands, Stream stream);
  Status prepare(const Problem& problem, const Operands& operands, Stream stream);
  Status explain(const Problem& problem, const Operands& operands, std::string& text);
  Status set_workspace(void* workspace, int64_t bytes);
  int64_t workspace_size();
  // Workspace that the problem's best kernel needs, were there enough.
  Status best_workspace(const Problem& problem, int64_t& bytes);
  Status release_stream(Stream stream);
  void set_policy(gemm_policy_t policy);
  gemm_policy_t policy() const { return policy_; }
  gemm_statistics_t statistics();
  void reset_statistics();

 private:
  enum class Action { launch, only_prepare };
  class Change;
  // A call whose plan is not known to its thread.
  struct Call {
    const Problem& problem;
    const Operands& operands;
    Stream stream;
    Action action;
    uint64_t capture = 0;            // that the stream is part of
    bool without_workspace = false;  // there is none to be had for it
  };

  // context.cpp
  void find_table();
  void adopt(Table table, const std::string& path, std::vector<std::string> warnings);

  // context_serve.cpp: calls, from the arguments to the launch
  const Plan* known_plan(ThreadMemory& mine, const Problem& problem, const Operands& operands, Stream stream,
                         StreamSet*& set) const;
  Status serve(Call call);
  Result<StreamSet*> set_for(const Call& call, const Plan& plan, const ThreadMemory& mine, bool& must_be_told);
  void do_without_workspace(Call& call, const std::string& why);
  void give_up_workspace(const std::string& why);
  Status launch(const Plan& plan, const Problem& problem, const Operands& operands, Stream stream, StreamSet* set);
  Status scale(const Problem& problem, const Operands& operands, Stream stream);
  Status scale_by_cublas(const Problem& problem, const Operands& operands, Stream stream);

  // context_plans.cpp: what serves a problem. With setup_ held, shared, where a table is looked at.
  Status plan_for(const PlanKey& key, const Operands& operands, std::shared_ptr<const Plan>& plan, bool* is_new);
  Status make_plan(const PlanKey& key, const Operands& operands, std::shared_ptr<Plan>& plan);
  Decision decide(const Problem& problem, const Operands& operands, int64_t workspace);
  Decision decide_reproducible(const Problem& problem, int64_t workspace) const;
  void keep(const std::shared_ptr<Kernel>& kernel);
  Result<Plan> bind(const Candidate& candidate, const PlanKey& key, const Operands& operands);
  void tell_new_plan(const Problem& problem, const Plan& plan);
  Result<const Kernel*> scale_kernel(const Operands& operands);
  Result<Cublas*> cublas();

  std::unique_ptr<Device> device_;
  // Every kernel that a plan ever had: captured graphs and work that is still queued may name it long after the plan is
  // gone.
  std::mutex kernels_mutex_;
  std::set<std::shared_ptr<const Kernel>> kernels_;
  const bool cublas_is_callers_;
  Log log_;
  std::optional<ShapeRecord> record_;  // where GEMM_RECORD is set

  std::shared_mutex setup_;              // exclusive in a Change; shared: plans and workspace are used
  std::atomic<uint64_t> generation_{1};  // of plans and workspace; one more with each Change
  std::unique_ptr<const Table> table_;
  std::unique_ptr<const Selector> selector_;  // of table_; never null
  std::string table_source_;                  // where the table is from and how well it fits, for people
  std::atomic<gemm_policy_t> policy_ = GEMM_POLICY_AUTO;
  PlanMemory plans_;
  StreamMemory streams_;
  CaptureMemory captures_;
  ThreadMemories threads_;

  std::once_flag said_no_kernels_, said_no_capture_memory_;
  std::mutex first_need_;  // guards the four below where they are made
  std::unique_ptr<Cublas> cublas_;
  std::string cublas_missing_;  // why, once opening has failed
  // For each epilogue two: for operands named on the host, and for indirect ones.
  std::array<std::shared_ptr<Kernel>, 8> scale_kernels_;
  std::array<std::atomic<const Kernel*>, 8> scale_known_{};  // the same, for all to see

  std::mutex statistics_mutex_;
  CallCounts counted_before_;  // when the statistics were reset
};

// Changes plans or workspace: no call is under way while it lives, and no thread trusts what it remembers afterwards.
class Context::Change {
 public:
  explicit Change(Context& context) : lock_(context.setup_) {
    context.generation_.fetch_add(1, std::memory_order_seq_cst);
    context.threads_.wait_for_visits();
  }

 private:
  std::unique_lock<std::shared_mutex> lock_;
};

}  // namespace gemm
