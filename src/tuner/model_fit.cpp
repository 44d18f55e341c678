#include "tuner/model_fit.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <map>

#include "kernels/kernel_spec.h"
#include "tuner/network_fit.h"

namespace gemm {
namespace {

constexpr double kNearBest =
    0.6;  // relative distance to the best time at which a time counts half: which comes first matters
constexpr double kLeastProductShare = 0.3;  // of the time of a choice with copies of operands
constexpr uint64_t kNetworks = 2;           // three make choices 0.15 % faster, and choosing take 0.6 us longer

// To mean 0 and variance 1, for networks learn slowly of anything else.
template <size_t Size>
struct Scale {
  std::array<double, Size> sums{}, squares{};
  double count = 0;

  void see(const std::array<float, Size>& inputs) {
    for (size_t i = 0; i < Size; ++i) {
      const auto x = static_cast<double>(inputs[i]);
      sums[i] += x, squares[i] += x * x;
    }
    ++count;
  }
  double mean(size_t i) const { return sums[i] / count; }
  // 0 for what is always the same.
  double factor(size_t i) const {
    const double variance = squares[i] / count - mean(i) * mean(i);
    return variance > 1e-9 ? 1 / std::sqrt(variance) : 0;
  }
  void apply(std::array<float, Size>& inputs) const {
    for (size_t i = 0; i < Size; ++i) inputs[i] = static_cast<float>((static_cast<double>(inputs[i]) - mean(i)) * factor(i));
  }
  // Makes weights of scaled inputs those of plain ones; what is constant goes to `rest`.
  void undo(std::array<FirstLayer, Size>& weights, FirstLayer& rest) const {
    for (size_t i = 0; i < Size; ++i)
      for (size_t j = 0; j < kFirstLayer; ++j) {
        weights[i][j] *= static_cast<float>(factor(i));
        rest[j] -= weights[i][j] * static_cast<float>(mean(i));
      }
  }
};

KernelInputs kernel_inputs(const KernelConfig& c) {
  const auto log = [](int x) { return std::log2(static_cast<float>(x)); };
  const auto loads = [&](LoadPath load) { return c.family == Family::tile && c.load == load ? 1.F : 0.F; };
  return {log(c.BM),
          log(c.BN),
          log(c.BK),
          log(c.TM),
          log(c.TN),
          log(c.stages),
          log(c.slices),
          log(c.min_blocks),
          loads(LoadPath::async),
          loads(LoadPath::async_transpose),
          loads(LoadPath::tma),
          loads(LoadPath::warp_specialized),
          loads(LoadPath::warp_specialized_k),
          c.family == Family::stream ? 1.F : 0.F,
          c.family == Family::batch ? 1.F : 0.F};
}

class Fit {
 public:
  Fit(Table& table, const std::vector<PointResult>& random, const std::vector<PointResult>& points)
      : table_(table), cublas_(table.portfolio.size()) {
    for (size_t i = 0; i < table_.portfolio.size(); ++i) {
      const PortfolioKernel& kernel = table_.portfolio[i];
      number_of_[kernel.id] = i;
      costs_.emplace_back(kernel.config, table_.device);
      kernels_.push_back(kernel_inputs(kernel.config));
    }
    Scale<kKernelInputs> scale;
    for (const KernelInputs& inputs : kernels_) scale.see(inputs);
    for (KernelInputs& inputs : kernels_) scale.apply(inputs);
    kernels_.emplace_back();  // cuBLAS, of which nothing is known
    is_measured_.resize(kernels_.size());
    for (const PointResult& result : random) random_problems_ += add(result);
    const std::vector<bool> on_random_ones = is_measured_;
    for (const PointResult& result : points) add(result);
    is_measured_ = on_random_ones;  // a kernel that was right on none is not to be chosen for others
  }

  void run() {
    table_.learned_model.reset();
    for (PortfolioKernel& kernel : table_.portfolio) kernel.traits.clear();
    if (random_problems_ == 0) return;
    for (FitProblem& problem : problems_) {
      problem_scale_.apply(problem.inputs);
      for (FitRow& row : problem.rows) choice_scale_.apply(row.inputs);
    }
    LearnedModel model;
    model.problems = random_problems_;
    std::vector<std::future<FittedNetwork>> networks;  // each takes seconds, and a core
    for (uint64_t seed = 1; seed <= kNetworks; ++seed)
      networks.push_back(std::async(std::launch::async, [this, seed] { return fit_network(problems_, kernels_, seed); }));
    for (std::future<FittedNetwork>& network : networks) keep(network.get(), model);
    table_.learned_model = std::move(model);
  }

 private:
  // With its relaid problems, since the model is about products alone: those on copies are of another problem. False where
  // none of these kernels was timed.
  bool add(const PointResult& result) {
    // A single kernel says something too: it may be so much faster there that no other was worth timing.
    if (std::none_of(result.options.begin(), result.options.end(), [&](const auto& o) { return number_of(o); }))
      return false;
    double best_us = result.cublas_us.value_or(std::numeric_limits<double>::infinity());
    for (const PointOption& option : result.options)
      if (number_of(option)) best_us = std::min(best_us, option.time_us.median);
    for (const Relayout relayout : {Relayout::none, Relayout::a, Relayout::b, Relayout::ab})
      add_product(result, relayout, best_us);
    return true;
  }

  // The choices with that relayout. How near a choice is to the best time, copies and all, makes its weight.
  void add_product(const PointResult& result, Relayout relayout, double best_us) {
    const CostProblem seen(relaid_problem(relayout, result.problem));
    FitProblem problem{problem_inputs(seen), {}};
    const auto add_row = [&](size_t kernel, const ChoiceInputs& inputs, double predicted_us, double product_us, double us) {
      const double behind = (us / best_us - 1) / kNearBest;
      problem.rows.push_back({kernel, inputs, static_cast<float>(std::log(product_us / predicted_us)),
                              static_cast<float>(1 / (1 + behind * behind))});
      choice_scale_.see(inputs);
      is_measured_[kernel] = true;
    };
    for (const PointOption& option : result.options) {
      const std::optional<size_t> kernel = number_of(option);
      if (!kernel || option.choice.relayout != relayout) continue;
      const double us = option.time_us.median;
      const double product_us = us - relayout_us(table_.device, relayout, result.problem);
      // Copies that took so little longer than predicted would leave next to nothing of a short product.
      if (product_us < kLeastProductShare * us) continue;
      const KernelCost& cost = costs_[*kernel];
      const auto& [config, split_k, reduction, its_relayout] = option.choice;
      const ProductCost product(cost, seen);
      const CostTerms terms = product.terms(split_k, reduction);
      add_row(*kernel, choice_inputs(cost, seen, split_k, reduction, terms), terms.us(), product_us, us);
    }
    if (result.cublas_us && relayout == Relayout::none) {
      const CostTerms terms = cublas_terms(table_.device, seen);
      add_row(cublas_, cublas_inputs(terms), terms.us(), *result.cublas_us, *result.cublas_us);
    }
    if (problem.rows.empty()) return;
    problem_scale_.see(problem.inputs);
    problems_.push_back(std::move(problem));
  }

  // Of the portfolio.
  std::optional<size_t> number_of(const PointOption& option) const {
    const auto found = number_of_.find(config_id(option.choice.config));
    if (found == number_of_.end()) return std::nullopt;
    return found->second;
  }

  void keep(FittedNetwork fitted, LearnedModel& model) {
    FirstLayer rest{};
    problem_scale_.undo(fitted.network.problem, rest);
    choice_scale_.undo(fitted.network.choice, rest);
    for (FirstLayer& traits : fitted.traits)
      for (size_t i = 0; i < kFirstLayer; ++i) traits[i] += rest[i];
    for (size_t i = 0; i < table_.portfolio.size(); ++i)
      if (is_measured_[i]) table_.portfolio[i].traits.push_back(fitted.traits[i]);
    if (is_measured_[cublas_]) fitted.network.cublas = fitted.traits[cublas_];
    model.networks.push_back(fitted.network);
  }

  Table& table_;
  size_t cublas_;  // its number, after the portfolio's
  std::map<std::string, size_t> number_of_;
  std::vector<KernelCost> costs_;
  std::vector<KernelInputs> kernels_;
  std::vector<bool> is_measured_;
  int random_problems_ = 0;
  std::vector<FitProblem> problems_;
  Scale<kProblemInputs> problem_scale_;
  Scale<kChoiceInputs> choice_scale_;
};

}  // namespace

void fit_model(Table& table, const std::vector<PointResult>& random, const std::vector<PointResult>& points) {
  Fit(table, random, points).run();
}

}  // namespace gemm
