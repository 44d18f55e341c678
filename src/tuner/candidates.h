// Which choices are worth compiling and timing for a problem: the model's best, spread so that its blind spots do not
// remove the winner.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dispatch/split_search.h"
#include "kernels/device.h"
#include "kernels/launch.h"

namespace gemm {

class CandidateRanker {
 public:
  // `most` candidates per problem at most; slow problems get fewer. `proven` configurations, a part of `configs`, have won
  // on other problems: they come first where the model does not rule them out.
  CandidateRanker(DeviceInfo device, const std::vector<KernelConfig>& configs, const std::vector<KernelConfig>& proven,
                  int most);

  // Best first. Kernels that earlier problems already need are slightly preferred, because they are compiled anyway: the
  // result depends on the order of the calls, and on nothing else.
  std::vector<Choice> candidates(const Problem& problem);

  // A configuration with the split of k that the model likes best; nothing where none can run.
  std::optional<PredictedChoice> best_split(const KernelConfig& config, const Problem& problem) const;

 private:
  struct Base {
    KernelConfig config;                 // without regard to order and acc_init, which the model does not see
    std::vector<KernelConfig> siblings;  // the same with every order and acc_init, in the order of the space
    bool has_twin = false;               // there is a base that differs in its load path only, and has twin_of this one
  };
  struct Ranked {
    const Base* base;
    Choice choice;
    double predicted_us;
  };
  class Selection;
  std::vector<Ranked> ranked(const Problem& problem) const;
  std::vector<Choice> proven_choices(const Problem& problem, double best_us) const;
  void add_kinds(const std::vector<Ranked>& list, Selection& selection) const;
  void add_tiles(const std::vector<Ranked>& list, Selection& selection) const;
  void add_siblings(const std::vector<Ranked>& list, Selection& selection) const;

  DeviceInfo device_;
  int most_;
  std::vector<Base> bases_;
  std::vector<KernelConfig> proven_;
  std::set<std::string> chosen_;  // kernels that earlier problems need
};

// Choices with the same configuration: another reduction, or a nearby split of k for the same compiled kernel.
std::vector<Choice> split_neighbours(const Choice& choice, const Problem& problem, const DeviceInfo& device);

// The same kernel with other copies of the operands, or none: the model compares these worst.
std::vector<Choice> relayout_neighbours(const Choice& choice, const Problem& problem, const DeviceInfo& device);

}  // namespace gemm
