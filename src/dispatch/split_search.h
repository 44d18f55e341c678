// The split of k and the reduction with which a configuration would serve a problem best, by the cost model.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "kernels/device.h"
#include "kernels/launch.h"

namespace gemm {

// Splits that are looked at.
inline constexpr std::array<int, 22> kSearchedSplits = {1,  2,  3,  4,  5,  6,  7,  8,  10, 12, 14,
                                                        16, 20, 24, 28, 32, 40, 48, 64, 80, 96, 128};

struct PredictedChoice {
  double us = 0;  // by predicted_us
  Choice choice;
};

// The ways to reduce so many splits of k.
std::span<const Reduction> reductions_of(const KernelConfig& config, int split);

// Whether the stream family is tried on a problem.
bool is_skinny(const Problem& problem);

// Whether a configuration is meant for problems of these sizes.
bool may_serve(const KernelConfig& config, const Problem& problem);

// For a configuration that is valid on the device: whether this choice can run with that much workspace, and is not the same
// as a simpler one.
bool may_run(const Choice& choice, const Problem& problem, const DeviceInfo& device, int64_t workspace);

// Which copies of operands may be worth their while for a problem: of those that the kernels read slowly. None for products
// that take hardly longer than a copy.
std::vector<Relayout> relayouts_of(const Problem& problem, const DeviceInfo& device);

// Whether a kernel reads copies faster than what it gets otherwise, and no other load path does the same with them.
bool gains_by_relayout(const KernelConfig& config);

// The best split on copies of the operands, with the time that copying takes.
std::optional<PredictedChoice> best_on_copies(const KernelConfig& config, Relayout relayout, const Problem& problem,
                                              const DeviceInfo& device, int64_t workspace);

// Nothing where no split can run.
std::optional<PredictedChoice> best_split(const KernelConfig& config, const Problem& problem, const DeviceInfo& device,
                                          int64_t workspace);

}  // namespace gemm
