// What a prediction works on. Only for predictor*.cpp.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "dispatch/predictor.h"
#include "dispatch/split_search.h"
#include "dispatch/ways_by_time.h"

namespace gemm {

inline constexpr size_t kMostKernels = 96;                                // a portfolio has 64 (tuner/portfolio.h)
inline constexpr size_t kMostGroups = kMostKernels / kKernelsAtOnce + 4;  // one for each formula may have a few kernels only
inline constexpr size_t kMostProducts = 4;                                // on copies of no operand, of A, of B, of both
// Ways that the first network is asked about at most, in rounds; with 16 in all, whatever they take, choices were as good
// (docs/performance.md, "Dispatch overhead").
inline constexpr size_t kRounds = 3, kOfRound = kKernelsAtOnce, kShortlist = kRounds * kOfRound;

struct Predictor::Product {
  using FirstLayers = std::array<FirstLayer, LearnedModel::kMostNetworks>;

  CostProblem problem;
  Relayout relayout;
  double copies_us;   // before the product
  int64_t workspace;  // that is left beside them
  // What each network gets from the problem, where a network is asked.
  bool is_known_to_networks = false;
  FirstLayers& first;

  Product(const Problem& its_problem, Relayout its_relayout, double its_copies_us, int64_t its_workspace,
          FirstLayers& its_first)
      : problem(its_problem), relayout(its_relayout), copies_us(its_copies_us), workspace(its_workspace), first(its_first) {}
  Product(const Product&) = delete;

  void show_to(const std::vector<TimeNetwork>& networks) {
    if (is_known_to_networks) return;
    const NonZeroInputs inputs(problem_inputs(problem));
    for (size_t i = 0; i < networks.size(); ++i) first[i] = networks[i].of_problem(inputs);
    is_known_to_networks = true;
  }
};

struct Predictor::Products {
  // Not in the products themselves: to begin one without zeros in all of this saves time.
  std::array<Product::FirstLayers, kMostProducts> first;
  std::array<std::optional<Product>, kMostProducts> all;
  size_t count = 0;

  Products(const Problem& problem, const DeviceInfo& device, int64_t workspace) {
    add(problem, Relayout::none, 0, workspace);
    for (const Relayout relayout : relayouts_of(problem, device)) {
      const int64_t left = workspace - relaid_product(relayout, problem).copy_bytes();
      if (left >= 0) add(relaid_problem(relayout, problem), relayout, relayout_us(device, relayout, problem), left);
    }
  }
  void add(const Problem& problem, Relayout relayout, double copies_us, int64_t workspace) {
    all[count].emplace(problem, relayout, copies_us, workspace, first[count]);
    ++count;
  }
};

// Of all kernels and products.
struct Predictor::Ways : WaysByTime<kMostProducts * kMostGroups> {};

// The best of them by the cost model, and what the networks say of them.
struct Predictor::Shortlist {
  struct Entry {
    size_t product, kernel;
    int split;
    Reduction reduction;
    double model_us;   // by the cost model, without copies
    float log_ratios;  // sum of the networks' answers
    size_t networks;   // that were asked
    double us;         // as they correct it, with copies
  };
  size_t count = 0;
  std::array<Entry, kShortlist> entries;
  std::array<ChoiceInputRows, kRounds> inputs;  // of each round
};

}  // namespace gemm
