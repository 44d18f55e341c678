// From a problem to kernels: exact point of the table, else what the cost model, calibrated on the table's kernels and on
// cuBLAS, predicts to be fastest, else the nearest points in log space, else a safe default, else cuBLAS. Every kernel that
// is offered has been checked against the real problem.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dispatch/predictor.h"
#include "dispatch/table.h"
#include "kernels/device.h"
#include "kernels/launch.h"
#include "kernels/problem.h"

namespace gemm {

// Which rule chose: a point of the same problem, the calibrated model, the nearest point, the built-in default kernels, or
// cuBLAS as the last; or the context's policy, in place of all of them (reproducible.h).
enum class Rule { exact, predicted, nearest, fallback, cublas, reproducible };
const char* to_string(Rule rule);  // "exact", "predicted", "nearest", "default", "cublas", "reproducible"

// One way to serve a problem.
struct Candidate {
  Rule rule = Rule::fallback;
  bool use_cublas = false;            // by the table's word (exact, nearest), by prediction, or for want of anything else
  Choice choice{};                    // where not use_cublas
  double distance = 0;                // to the point, in octaves
  double predicted_us = 0;            // by the calibrated model, where the rule is predicted
  const TablePoint* point = nullptr;  // of the table; null for predicted, default and cublas
};

struct Decision {
  std::vector<Candidate> candidates;  // best first; the last one is cuBLAS
  std::vector<std::string> rejected;  // what the table offered but may not serve this problem here, with the reason
};

// Configurations for any GPU from sm_75 on, largest tile first.
const std::vector<KernelConfig>& default_configs();

// Length of the vector of differences of log2 m, n, k and batch, plus a penalty for each operand that is stored otherwise.
// Sizes must be positive.
double distance(const Problem& a, const Problem& b);

// Chooses for many problems: what does not depend on the problem is worked out once. Safe for concurrent use.
class Selector {
 public:
  // `table` may be null; it must outlive this object, and decisions point into it.
  Selector(const Table* table, const DeviceInfo& device);

  // Everything that may serve the problem, in the order in which to try it. Depends on table, device and arguments only. The
  // problem is neither empty nor refused. Takes about 5 microseconds on a Zen 4 where the problem was not tuned
  // (docs/performance.md, "Dispatch overhead" and "Width of the networks").
  Decision choose(const Problem& problem, int64_t workspace_available) const;

  // The table's point of this problem, or null.
  const TablePoint* find_point(const Problem& problem) const;

 private:
  const Table* table_;
  DeviceInfo device_;
  std::optional<Predictor> predictor_;
  std::vector<const char*> why_defaults_invalid_;  // for each of the default configurations, null where it is valid
  std::vector<std::pair<uint64_t, const TablePoint*>> points_;  // by a hash of the problem, sorted
};

// The same for one problem.
Decision choose(const Table* table, const Problem& problem, const DeviceInfo& device, int64_t workspace_available);

// "nearest (distance 1.00): tile_…": one line for people.
std::string to_string(const Candidate& candidate);

}  // namespace gemm
