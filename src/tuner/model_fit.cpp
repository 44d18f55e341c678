#include "tuner/model_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

constexpr size_t kFactors = CostFactors::kCount;
constexpr double kNearBest = 0.3;   // relative distance to the best time at which a time counts half
constexpr double kOutlier = 0.5;    // of the logarithm: errors at which a time counts half
constexpr double kKindRidge = 0.5;  // in times measured that say otherwise
constexpr double kKernelRidge = 3;  // the same
constexpr int kIterations = 8;
constexpr double kLongestStep = 0.7;  // of a logarithm
constexpr double kMostLog = 3;
constexpr double kSettled = 1e-3;

using Logs = std::array<double, kFactors>;

// A measured time, with what predicts it.
struct Row {
  size_t column;   // of the kernel, or cuBLAS
  size_t problem;  // index
  CostTerms terms;
  std::array<FactorPlaces, 5> places;
  double log_us, weight;
};

// d log(time) / d log(factor), for those factors that matter to a row.
struct Slopes {
  size_t count = 0;
  std::array<std::pair<size_t, double>, 20> entries;
};

double predicted_log(const Row& row, const Logs& logs, Slopes* slopes) {
  CostTerms terms = row.terms;
  for (const FactorPlaces& f : row.places)
    for (const size_t place : f.places)
      if (place < kFactors) terms.*f.term *= std::exp(logs[place]);
  const double us = terms.us(), body = us - terms.fixed - terms.reduction;
  if (slopes == nullptr) return std::log(us);
  for (const FactorPlaces& f : row.places) {
    const bool overlaps = f.term != &CostTerms::fixed && f.term != &CostTerms::reduction;
    const double part = terms.*f.term, slope = overlaps ? part * part / std::max(body, 1e-9) / us : part / us;
    for (const size_t place : f.places)
      if (place < kFactors && slope > 0) slopes->entries[slopes->count++] = {place, slope};
  }
  return std::log(us);
}

// Solves the symmetric positive definite system in place by Cholesky's method.
Logs solve(std::array<Logs, kFactors>& a, Logs b) {
  for (size_t j = 0; j < kFactors; ++j) {
    for (size_t k = 0; k < j; ++k) a[j][j] -= a[j][k] * a[j][k];
    a[j][j] = std::sqrt(a[j][j]);
    for (size_t i = j + 1; i < kFactors; ++i) {
      for (size_t k = 0; k < j; ++k) a[i][j] -= a[i][k] * a[j][k];
      a[i][j] /= a[j][j];
    }
  }
  for (size_t i = 0; i < kFactors; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (size_t i = kFactors; i-- > 0;) {
    for (size_t k = i + 1; k < kFactors; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

Logs fitted(const std::vector<const Row*>& rows, const Logs& prior, double ridge) {
  Logs logs = prior;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    std::array<Logs, kFactors> normal{};
    Logs right{};
    for (size_t i = 0; i < kFactors; ++i) normal[i][i] = ridge, right[i] = ridge * (prior[i] - logs[i]);
    for (const Row* row : rows) {
      Slopes slopes;
      const double error = row->log_us - predicted_log(*row, logs, &slopes);
      const double weight = row->weight / (1 + error * error / (kOutlier * kOutlier));
      for (size_t i = 0; i < slopes.count; ++i) {
        const auto& [place, slope] = slopes.entries[i];
        right[place] += weight * slope * error;
        for (size_t j = 0; j < slopes.count; ++j)
          normal[place][slopes.entries[j].first] += weight * slope * slopes.entries[j].second;
      }
    }
    const Logs step = solve(normal, right);
    double longest = 0;
    for (size_t i = 0; i < kFactors; ++i) {
      const double length = std::clamp(step[i], -kLongestStep, kLongestStep);
      logs[i] = std::clamp(logs[i] + length, -kMostLog, kMostLog);
      longest = std::max(longest, std::abs(length));
    }
    if (longest < kSettled) break;
  }
  return logs;
}

CostFactors factors_of(const Logs& logs) {
  CostFactors factors;
  for (size_t i = 0; i < kFactors; ++i) factors.values[i] = std::exp(logs[i]);
  return factors;
}

class Fit {
 public:
  Fit(Table& table, const std::vector<PointResult>& measured) : table_(table), measured_(measured) {
    for (size_t i = 0; i < table_.portfolio.size(); ++i) column_of_[table_.portfolio[i].id] = i;
    for (const PortfolioKernel& kernel : table_.portfolio) costs_.emplace_back(kernel.config, table_.device);
    // Of some problems only the winner is known, from an older table: they say how fast kernels are where they win. They
    // count where there is nothing else.
    for (size_t i = 0; i < measured_.size(); ++i)
      if (measured_[i].options.size() > 1) add_rows(i);
    if (rows_.empty())
      for (size_t i = 0; i < measured_.size(); ++i) add_rows(i);
  }

  void run() {
    const size_t columns = table_.portfolio.size() + 1;
    std::vector<std::vector<const Row*>> by_column(columns);
    for (const Row& row : rows_) by_column[row.column].push_back(&row);
    std::map<std::pair<Family, LoadPath>, std::vector<const Row*>> by_kind;
    for (const Row& row : rows_)
      if (row.column + 1 < columns) by_kind[kind_of(row.column)].push_back(&row);
    std::map<std::pair<Family, LoadPath>, Logs> kinds;
    for (const auto& [kind, rows] : by_kind) kinds[kind] = fitted(rows, Logs{}, kKindRidge);

    std::vector<Logs> logs(columns);
    for (size_t i = 0; i + 1 < columns; ++i) {
      if (by_column[i].empty()) continue;
      logs[i] = fitted(by_column[i], kinds.at(kind_of(i)), kKernelRidge);
      table_.portfolio[i].factors = factors_of(logs[i]);
    }
    if (!by_column.back().empty()) {
      logs.back() = fitted(by_column.back(), Logs{}, kKindRidge);
      table_.cublas_factors = factors_of(logs.back());
    }
    remember_ratios(logs);
  }

 private:
  std::pair<Family, LoadPath> kind_of(size_t column) const {
    const KernelConfig& config = table_.portfolio[column].config;
    return {config.family, config.load};
  }

  void add_rows(size_t problem) {
    const PointResult& result = measured_[problem];
    const CostProblem seen(result.problem);
    const ProblemClass its_class(seen);
    double best_us = std::numeric_limits<double>::infinity();
    for (const PointOption& option : result.options)
      if (column_of_.count(config_id(option.choice.config)) != 0) best_us = std::min(best_us, option.time_us.median);
    const auto add = [&](size_t column, const CostTerms& terms, Reduction reduction, double us) {
      const double behind = std::max(0.0, us / best_us - 1) / kNearBest;
      rows_.push_back(
          {column, problem, terms, factor_places(its_class, reduction), std::log(us), 1 / (1 + behind * behind)});
    };
    for (const PointOption& option : result.options) {
      const auto found = column_of_.find(config_id(option.choice.config));
      // The factors are about the kernel alone.
      if (found == column_of_.end() || option.choice.relayout != Relayout::none) continue;
      const Choice& choice = option.choice;
      add(found->second, costs_[found->second].terms(seen, choice.split_k, choice.reduction), choice.reduction,
          option.time_us.median);
    }
    if (result.cublas_us)
      add(table_.portfolio.size(), cublas_terms(table_.device, seen), Reduction::ticket, *result.cublas_us);
  }

  // Of each kernel's fastest choice on each problem.
  void remember_ratios(const std::vector<Logs>& logs) {
    constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();
    std::vector<std::vector<double>> fastest(measured_.size(), std::vector<double>(logs.size(), 1e300));
    table_.calibration.clear();
    for (const PointResult& result : measured_)
      table_.calibration.push_back({result.problem, std::vector<float>(logs.size(), kUnknown)});
    for (const Row& row : rows_) {
      double& known = fastest[row.problem][row.column];
      if (row.log_us >= known) continue;
      known = row.log_us;
      table_.calibration[row.problem].log_ratios[row.column] =
          static_cast<float>(row.log_us - predicted_log(row, logs[row.column], nullptr));
    }
    std::erase_if(table_.calibration, [](const MeasuredProblem& one) {
      return std::all_of(one.log_ratios.begin(), one.log_ratios.end(), [](float ratio) { return std::isnan(ratio); });
    });
  }

  Table& table_;
  const std::vector<PointResult>& measured_;
  std::map<std::string, size_t> column_of_;
  std::vector<KernelCost> costs_;
  std::vector<Row> rows_;
};

}  // namespace

void fit_model(Table& table, const std::vector<PointResult>& measured) { Fit(table, measured).run(); }

}  // namespace gemm
