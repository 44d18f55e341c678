// From a problem to kernels: exact point of the table, else cuBLAS where it won at a point close by, else what the cost
// model, calibrated on the table's kernels, predicts to be fastest, else the nearest points in log space, else a safe
// default, else cuBLAS. Every kernel that is offered has been checked against the real problem.
#pragma once

#include <string>
#include <vector>

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
  bool use_cublas = false;            // by the table's word (exact, nearest), or because nothing else is left
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

// Everything that may serve the problem, in the order in which to try it. Depends on its arguments only. `table` may be
// null; the decision points into it. The problem is neither empty nor refused.
Decision choose(const Table* table, const Problem& problem, const DeviceInfo& device, int64_t workspace_available);

// "nearest (distance 1.00): tile_…": one line for people.
std::string to_string(const Candidate& candidate);

}  // namespace gemm
