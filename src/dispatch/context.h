// What a gemm_context_t is: one device with its table, remembered plans and workspaces, behind the C API.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "dispatch/cublas.h"
#include "dispatch/plan_memory.h"
#include "dispatch/selector.h"
#include "dispatch/stream_memory.h"
#include "dispatch/table.h"
#include "gemm/gemm.h"
#include "kernels/device.h"

namespace gemm {

// A status with its story. Success allocates nothing.
struct Status {
  gemm_status code = GEMM_SUCCESS;
  std::string message;
  bool ok() const { return code == GEMM_SUCCESS; }
};

struct ContextOptions {
  bool find_table = true;                        // look in the default places (table_search.h)
  std::function<void(const std::string&)> warn;  // default: one line on stderr
};

class Context {
 public:
  explicit Context(std::unique_ptr<Device> device, ContextOptions options = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Device& device() { return *device_; }

  Status load_table(const std::string& path);
  Status sgemm(const Problem& problem, const Operands& operands, Stream stream);
  Status prepare(const Problem& problem, const Operands& operands, Stream stream);
  Status explain(const Problem& problem, const Operands& operands, std::string& text);
  Status set_workspace(void* workspace, int64_t bytes);
  int64_t workspace_size();
  // Workspace that the problem's best kernel needs, were there enough.
  Status best_workspace(const Problem& problem, int64_t& bytes);

 private:
  enum class Action { launch, only_prepare };

  void find_table();
  void adopt(Table table, const std::string& path, std::vector<std::string> warnings);
  Status serve(const Problem& problem, const Operands& operands, Stream stream, Action action);
  void give_up_workspace(const std::string& why);
  Status scale(const Problem& problem, const Operands& operands, Stream stream);
  Status run_cublas(const Problem& problem, const Operands& operands, Stream stream);
  std::shared_ptr<StreamSet> cublas_workspace(Stream stream);
  Result<std::shared_ptr<Kernel>> scale_kernel();
  Result<Cublas*> cublas();

  // These need setup_ to be held, shared.
  Status serve_locked(const Problem& problem, const Operands& operands, Stream stream, Action action,
                      std::string& no_workspace);
  Status plan_for(const Problem& problem, const Operands& operands, std::shared_ptr<const Plan>& plan);
  Status make_plan(const Problem& problem, const Operands& operands, std::shared_ptr<Plan>& plan);
  Result<Plan> bind(const Candidate& candidate, const Problem& problem, const Operands& operands);
  Status launch(const Plan& plan, const Problem& problem, const Operands& operands, Stream stream, StreamSet* set);

  std::unique_ptr<Device> device_;
  ContextOptions options_;

  std::shared_mutex setup_;  // exclusive: table and workspace change; shared: they are used
  std::unique_ptr<const Table> table_;
  std::string table_source_;  // where the table is from and how well it fits, for people
  PlanMemory plans_;
  StreamMemory streams_;

  std::once_flag said_no_kernels_;
  std::mutex first_need_;  // guards the two below
  std::unique_ptr<Cublas> cublas_;
  std::string cublas_missing_;  // why, once opening has failed
  std::shared_ptr<Kernel> scale_kernel_;
};

}  // namespace gemm
