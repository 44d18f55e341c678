#include "dispatch/predictor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "dispatch/lanes.h"
#include "dispatch/split_search.h"
#include "dispatch/ways_by_time.h"

namespace gemm {
namespace {

// Ways that the first network is asked about, in rounds, the best by the cost model first, until the next one is slower than
// the best so far, even if the networks shorten it to kShortened. On 8,000 random problems the choice is 0.01 % slower by
// the networks than with 16 whatever they take, and 0.05 % with 0.85, which takes 3 % less; with all ways 0.3 % faster.
constexpr size_t kRounds = 3, kOfRound = kKernelsAtOnce, kShortlist = kRounds * kOfRound;
constexpr double kShortened = 0.8;
constexpr size_t kMostKernels = 96;                                // a portfolio has 64 (tuner/portfolio.h)
constexpr size_t kMostGroups = kMostKernels / kKernelsAtOnce + 4;  // one for each formula may have a few kernels only
constexpr size_t kMostProducts = 4;                                // on copies of no operand, of A, of B, of both
// Times the best, at which a choice is hopeless in the eyes of one network, of the mean of two, and of three and more.
// 1.284, 1.284 and 1.105 ask a quarter more.
constexpr std::array kFarBehind = {1.2, 1.12, 1.06};

// Times the best known by the cost model, at which a kernel is not worth a search for a better split. That costs 0.03 % on
// 8,000 random problems, and 2 costs 0.01 %; the search has a quarter fewer instructions, and a seventh.
constexpr double kFarFromBest = 1.5;

// Of the geometric mean of so many ratios, given the sum of their logarithms.
double mean_ratio(float log_ratios, size_t count) {
  return static_cast<double>(std::exp(log_ratios / static_cast<float>(count)));
}

// Puts what the networks' inputs are made of into a lane.
void put(const KernelGroup& group, const GroupWays& ways, size_t from, ChoiceRows& rows, size_t to) {
  const auto& kernels = laid_out_as<cost::KernelNumbers<LaneRow>>(&group.numbers);
  rows.BM[to] = kernels.BM[from], rows.by_BM[to] = kernels.by_BM.inverse[from];
  rows.BN[to] = kernels.BN[from], rows.by_BN[to] = kernels.by_BN.inverse[from];
  rows.BK[to] = kernels.BK[from];
  for (const auto row : {&GroupWays::fixed, &GroupWays::compute, &GroupWays::memory, &GroupWays::latency,
                         &GroupWays::reduction, &GroupWays::us, &GroupWays::split, &GroupWays::how})
    (rows.ways.*row)[to] = (ways.*row)[from];
}

}  // namespace

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

  void show_to(const std::vector<TimeNetwork>& networks) {
    if (is_known_to_networks) return;
    const NonZeroInputs inputs(problem_inputs(problem));
    for (size_t i = 0; i < networks.size(); ++i) first[i] = networks[i].of_problem(inputs);
    is_known_to_networks = true;
  }
};

struct Predictor::Products {
  std::array<Product::FirstLayers, kMostProducts> first;  // beside `all`, which is filled with zeros
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

Predictor::Predictor(const Table& table, const DeviceInfo& device) : device_(device) {
  if (table.learned_model) networks_ = table.learned_model->networks;
  std::vector<const PortfolioKernel*> portfolio;
  for (const PortfolioKernel& kernel : table.portfolio) portfolio.push_back(&kernel);
  // Kernels of a group climb together: those with tiles of one size end near the same split. Large tiles first, which are
  // more often the fastest: the sooner that is known, the less others have to climb.
  std::stable_sort(portfolio.begin(), portfolio.end(), [](const PortfolioKernel* a, const PortfolioKernel* b) {
    return a->config.BM * a->config.BN > b->config.BM * b->config.BN;
  });
  for (const Formula formula : {Formula::tile, Formula::specialized, Formula::stream, Formula::batch})
    for (const bool gains : {true, false})
      for (const PortfolioKernel* one : portfolio) {
        const PortfolioKernel& kernel = *one;
        const bool has_traits = table.learned_model && kernel.traits.size() == networks_.size() && !networks_.empty();
        if (kernels_.size() == kMostKernels) break;
        if (formula != formula_of(kernel.config) || gains != gains_by_relayout(kernel.config)) continue;
        if ((!has_traits && !kernel.model_factor) || why_invalid(kernel.config, device.limits) != nullptr) continue;
        costs_.emplace_back(kernel.config, device);
        kernels_.push_back(
            {has_traits ? kernel.traits : std::vector<FirstLayer>{}, has_traits ? 0 : std::log(*kernel.model_factor)});
        add_to_groups(costs_.back(), can_cluster(kernel.config) && device.limits.compute_capability >= 90);
      }
  knows_cublas_ = !networks_.empty() && std::all_of(networks_.begin(), networks_.end(),
                                                    [](const TimeNetwork& one) { return one.cublas.has_value(); });
}

void Predictor::add_to_groups(const KernelCost& cost, bool may_cluster) {
  const bool starts_one =
      groups_.empty() || groups_.back().kernels.formula != cost.formula || groups_.back().kernels.count == kKernelsAtOnce;
  if (starts_one) groups_.push_back({KernelGroup(cost.formula), costs_.size() - 1, 0});
  groups_.back().kernels.add(cost, may_cluster);
  groups_.back().gaining += gains_by_relayout(cost.config);
}

void Predictor::search(size_t product_number, const Product& product, Ways& ways) const {
  for (size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    const size_t kernels = product.relayout == Relayout::none ? group.kernels.count : group.gaining;
    if (kernels == 0 || (group.kernels.formula == Formula::stream && !is_skinny(product.problem.problem))) continue;
    const double hopeless_us = ways.least_us() * kFarFromBest - product.copies_us;
    search_(group.kernels, product.problem, static_cast<double>(product.workspace), hopeless_us, ways.groups[ways.count]);
    ways.add({product_number, i}, kernels, static_cast<float>(product.copies_us));
  }
}

// The next ones, without those that take longer.
void Predictor::take_round(Ways& ways, double hopeless_us, const Product& any_product, Shortlist& list) const {
  const size_t first = list.count;
  ChoiceRows rows{};
  for (; list.count < first + kOfRound; ++list.count) {
    const auto next = ways.take(hopeless_us);
    if (!next) break;
    const size_t group = *next / kKernelsAtOnce, lane = *next % kKernelsAtOnce;
    const GroupWays& found = ways.groups[group];
    list.entries[list.count] = {ways.origins[group].product,
                                groups_[ways.origins[group].group].first + lane,
                                static_cast<int>(found.split[lane]),
                                static_cast<Reduction>(static_cast<int>(found.how[lane])),
                                double{found.us[lane]},
                                0,
                                0,
                                0};
    put(groups_[ways.origins[group].group].kernels, found, lane, rows, list.count - first);
  }
  // Copies of operands do not change the sizes.
  choice_inputs(rows, any_product.problem, device_.sm_count, list.inputs[first / kOfRound]);
}

// Asks a network about entries of the list. Returns the best time of them.
double Predictor::ask(size_t network, std::span<const size_t> places, Products& products, Shortlist& list) const {
  std::array<NetworkQuestion, kShortlist> questions;
  std::array<float, kShortlist> answers;
  for (size_t i = 0; i < places.size(); ++i) {
    const Shortlist::Entry& entry = list.entries[places[i]];
    Product& product = *products.all[entry.product];
    product.show_to(networks_);
    questions[i] = {product.first[network].data(), kernels_[entry.kernel].traits[network].data(),
                    &list.inputs[places[i] / kOfRound][0][places[i] % kOfRound]};
  }
  networks_[network].log_ratios(std::span(questions).first(places.size()), answers.data());
  double best_us = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < places.size(); ++i) {
    Shortlist::Entry& entry = list.entries[places[i]];
    entry.log_ratios += answers[i];
    entry.networks = network + 1;
    entry.us = entry.model_us * mean_ratio(entry.log_ratios, entry.networks) + products.all[entry.product]->copies_us;
    best_us = std::min(best_us, entry.us);
  }
  return best_us;
}

// Fills the list. Network by network, each is asked about what those before it have left.
void Predictor::correct(Ways& ways, Products& products, Shortlist& list) const {
  std::array<size_t, kShortlist> places;
  size_t count = 0;
  double known_us = std::numeric_limits<double>::infinity(), best_us = known_us;  // known: without any network
  for (size_t round = 0; round < kRounds; ++round) {
    const size_t first = count, first_place = list.count;
    take_round(ways, best_us / kShortened, *products.all[0], list);
    for (size_t place = first_place; place < list.count; ++place) {
      Shortlist::Entry& entry = list.entries[place];
      if (!kernels_[entry.kernel].traits.empty()) {
        places[count++] = place;
        continue;
      }
      entry.us = entry.model_us * std::exp(kernels_[entry.kernel].log_factor) + products.all[entry.product]->copies_us;
      entry.networks = networks_.size();
      known_us = std::min(known_us, entry.us);
    }
    if (count > first) best_us = std::min(best_us, ask(0, std::span(places).subspan(first, count - first), products, list));
    best_us = std::min(best_us, known_us);
    if (list.count < first_place + kOfRound) break;
  }
  for (size_t network = 1; network <= networks_.size(); ++network) {
    const auto left = std::span(places).first(count);
    const double hopeless_us = best_us * kFarBehind[std::min(network - 1, kFarBehind.size() - 1)];
    const auto end = std::remove_if(left.begin(), left.end(), [&](size_t i) { return list.entries[i].us > hopeless_us; });
    count = static_cast<size_t>(end - left.begin());
    if (network < networks_.size())
      best_us = std::min(known_us, ask(network, std::span(places).first(count), products, list));
  }
}

// 0 where it is not known.
double Predictor::cublas_us(Product& product) const {
  if (!knows_cublas_) return 0;
  product.show_to(networks_);
  const CostTerms terms = cublas_terms(device_, product.problem);
  ChoiceInputRows inputs;  // in the first lane
  const ChoiceInputs of_cublas = cublas_inputs(terms);
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i][0] = of_cublas[i];
  float log_ratios = 0;
  for (size_t i = 0; i < networks_.size(); ++i) {
    const NetworkQuestion question{product.first[i].data(), networks_[i].cublas->data(), inputs.front().data()};
    float answer;
    networks_[i].log_ratios(std::span(&question, 1), &answer);
    log_ratios += answer;
  }
  return terms.us() * mean_ratio(log_ratios, networks_.size());
}

Predictor::Predictions Predictor::predict(const Problem& problem, int64_t workspace) const {
  Products products(problem, device_, workspace);
  Shortlist list;
  Ways ways;
  for (size_t i = 0; i < products.count; ++i) search(i, *products.all[i], ways);
  correct(ways, products, list);
  Predictions predictions;
  predictions.cublas_us = cublas_us(*products.all[0]);

  const std::span entries = std::span(list.entries).first(list.count);
  // What more networks were asked about is better in the eyes of those before.
  const auto faster = [](const Shortlist::Entry& a, const Shortlist::Entry& b) {
    return a.networks != b.networks ? a.networks > b.networks : a.us < b.us;
  };
  std::array<size_t, kMost> kernels;  // of the predictions
  for (size_t left = list.count; left > 0 && predictions.count < kMost; --left) {
    const auto best = std::min_element(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(left), faster);
    const auto known = std::span(kernels).first(predictions.count);
    if (std::find(known.begin(), known.end(), best->kernel) == known.end()) {
      const Choice choice{costs_[best->kernel].config, best->split, best->reduction, products.all[best->product]->relayout};
      if (may_run(choice, problem, device_, workspace)) {
        kernels[predictions.count] = best->kernel;
        predictions.best[predictions.count++] = {best->us, choice};
      }
    }
    *best = entries[left - 1];
  }
  return predictions;
}

}  // namespace gemm
