#include "dispatch/predictor.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "dispatch/predictor_parts.h"

namespace gemm {
namespace {

// Times the best known by the cost model, at which a kernel is not worth a search for a better split. On 8,000 random
// problems that takes a quarter of the search's instructions off for choices that are 0.03 % slower; 2 takes a seventh off
// for 0.01 %.
constexpr double kFarFromBest = 1.5;

}  // namespace

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

Predictor::Predictions Predictor::predict(const Problem& problem, int64_t workspace) const {
  Products products(problem, device_, workspace);
  Shortlist list;
  Ways ways;
  for (size_t i = 0; i < products.count; ++i) search(i, *products.all[i], ways);
  const double best_us = correct(ways, products, list);
  Predictions predictions;
  predictions.cublas_us = cublas_us(*products.all[0], best_us);

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
