#include "dispatch/predictor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "dispatch/split_climb.h"
#include "dispatch/split_search.h"

namespace gemm {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Kernels that the networks are asked about, the best by the cost model alone. On 1,100 random problems of an H200 the
// choice was 0.1 % slower with 12, and 0.1 % faster with 24.
constexpr size_t kShortlist = 16;
constexpr double kAboveLeast = 1.2;  // times the lower bound, at which a kernel is hoped to serve: no choice is worse for it
constexpr size_t kMostKernels = 96;  // a portfolio has 64 (tuner/portfolio.h)
// Of the logarithm, by which a choice may be behind in the first network's eyes and still be best in those of all.
constexpr float kFarBehind = 0.25F;

}  // namespace

struct Predictor::Product {
  CostProblem problem;
  Relayout relayout;
  double copies_us;                                           // before the product
  std::array<FirstLayer, LearnedModel::kMostNetworks> first;  // what each network gets from the problem

  Product(const Problem& its_problem, Relayout its_relayout, double its_copies_us, const std::vector<TimeNetwork>& networks)
      : problem(its_problem), relayout(its_relayout), copies_us(its_copies_us) {
    const ProblemInputs inputs = problem_inputs(problem);
    for (size_t i = 0; i < networks.size(); ++i) first[i] = networks[i].of_problem(inputs);
  }
};

// The best ways by the cost model, in no order.
struct Predictor::Shortlist {
  struct Entry {
    const Product* product = nullptr;
    const Kernel* kernel = nullptr;
    Way way;
    double us = 0;  // as the networks correct it
  };
  size_t count = 0, worst = 0;
  std::array<double, kShortlist> model_us;
  std::array<Entry, kShortlist> entries;

  double worst_us() const { return count < kShortlist ? kInfinite : model_us[worst]; }
  void add(const Product& product, const Kernel& kernel, const Way& way) {
    const double us = way.us + product.copies_us;
    if (!(us < worst_us())) return;
    const size_t place = count < kShortlist ? count++ : worst;
    model_us[place] = us;
    entries[place] = {&product, &kernel, way, 0};
    worst = static_cast<size_t>(std::max_element(model_us.begin(), model_us.begin() + static_cast<std::ptrdiff_t>(count)) -
                                model_us.begin());
  }
};

Predictor::Predictor(const Table& table, const DeviceInfo& device) : device_(device) {
  if (table.learned_model) networks_ = table.learned_model->networks;
  for (const PortfolioKernel& kernel : table.portfolio) {
    const bool has_traits = table.learned_model && kernel.traits.size() == networks_.size() && !networks_.empty();
    if (kernels_.size() == kMostKernels) break;
    if ((!has_traits && !kernel.model_factor) || why_invalid(kernel.config, device.limits) != nullptr) continue;
    kernels_.push_back({KernelCost(kernel.config, device), has_traits ? kernel.traits : std::vector<FirstLayer>{},
                        has_traits ? 0 : std::log(*kernel.model_factor),
                        can_cluster(kernel.config) && device.limits.compute_capability >= 90,
                        gains_by_relayout(kernel.config)});
  }
}

void Predictor::shorten(const Product& product, int64_t workspace, Shortlist& list) const {
  struct Open {
    double least_us;
    const Kernel* kernel;
  };
  std::array<Open, kMostKernels> open;
  size_t count = 0;
  for (const Kernel& kernel : kernels_) {
    if (product.relayout != Relayout::none && !kernel.gains_by_copies) continue;
    if (!may_serve(kernel.cost.config, product.problem.problem)) continue;
    open[count++] = {kernel.cost.least(product.problem).us() + product.copies_us, &kernel};
  }
  std::sort(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(count),
            [](const Open& a, const Open& b) { return a.least_us < b.least_us; });
  for (const auto& [least_us, kernel] : std::span(open).first(count)) {
    if (kAboveLeast * least_us > list.worst_us()) return;
    const Way way = best_way(kernel->cost, product.problem, kernel->clusters, workspace);
    if (way.us < kInfinite) list.add(product, *kernel, way);
  }
}

// All are judged by the first network; the others are asked about those that may be best.
void Predictor::correct(Shortlist& list) const {
  std::array<float, kShortlist> log_ratios;
  std::array<ChoiceInputs, kShortlist> inputs;
  const auto ask = [&](size_t i, size_t network) {
    const Shortlist::Entry& entry = list.entries[i];
    return networks_[network].log_ratio(entry.product->first[network], entry.kernel->traits[network], inputs[i]);
  };
  const auto set_time = [&](size_t i, float log_ratio) {
    Shortlist::Entry& entry = list.entries[i];
    entry.us = entry.way.us * std::exp(static_cast<double>(log_ratio)) + entry.product->copies_us;
  };
  double best_us = kInfinite;
  for (size_t i = 0; i < list.count; ++i) {
    const Shortlist::Entry& entry = list.entries[i];
    if (entry.kernel->traits.empty()) {
      log_ratios[i] = static_cast<float>(entry.kernel->log_factor);
    } else {
      inputs[i] = choice_inputs(entry.kernel->cost.config, entry.kernel->cost.sm_count, entry.product->problem,
                                entry.way.split, entry.way.reduction, entry.way.terms);
      log_ratios[i] = ask(i, 0);
    }
    set_time(i, log_ratios[i]);
    best_us = std::min(best_us, entry.us);
  }
  const double far_behind_us = best_us * std::exp(kFarBehind);
  for (size_t i = 0; i < list.count; ++i) {
    if (list.entries[i].kernel->traits.empty() || list.entries[i].us > far_behind_us) continue;
    for (size_t network = 1; network < networks_.size(); ++network) log_ratios[i] += ask(i, network);
    set_time(i, log_ratios[i] / static_cast<float>(networks_.size()));
  }
}

double Predictor::cublas_us(const Product& product) const {
  const CostTerms terms = cublas_terms(device_, product.problem);
  const ChoiceInputs inputs = cublas_inputs(terms);
  float log_ratio = 0;
  for (size_t i = 0; i < networks_.size(); ++i) {
    if (!networks_[i].cublas) return 0;
    log_ratio += networks_[i].log_ratio(product.first[i], *networks_[i].cublas, inputs);
  }
  return networks_.empty() ? 0
                           : terms.us() * std::exp(static_cast<double>(log_ratio / static_cast<float>(networks_.size())));
}

Predictor::Predictions Predictor::predict(const Problem& problem, int64_t workspace) const {
  Shortlist list;
  const Product as_it_is(problem, Relayout::none, 0, networks_);
  shorten(as_it_is, workspace, list);
  std::vector<Product> on_copies;
  const std::vector<Relayout> relayouts = relayouts_of(problem, device_);
  on_copies.reserve(relayouts.size());
  for (const Relayout relayout : relayouts) {
    on_copies.emplace_back(relaid_problem(relayout, problem), relayout, relayout_us(device_, relayout, problem), networks_);
    shorten(on_copies.back(), workspace - relaid_product(relayout, problem).copy_bytes(), list);
  }
  correct(list);

  Predictions predictions;
  std::array<size_t, kShortlist> order;
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(list.count),
            [&](size_t a, size_t b) { return list.entries[a].us < list.entries[b].us; });
  for (size_t i = 0; i < list.count && predictions.count < kMost; ++i) {
    const Shortlist::Entry& entry = list.entries[order[i]];
    const Choice choice{entry.kernel->cost.config, entry.way.split, entry.way.reduction, entry.product->relayout};
    const auto same_kernel = [&](const Prediction& other) { return other.choice.config == choice.config; };
    const auto known = predictions.best.begin() + static_cast<std::ptrdiff_t>(predictions.count);
    if (std::any_of(predictions.best.begin(), known, same_kernel)) continue;
    if (may_run(choice, problem, device_, workspace)) predictions.best[predictions.count++] = {entry.us, choice};
  }
  predictions.cublas_us = cublas_us(as_it_is);
  return predictions;
}

}  // namespace gemm
