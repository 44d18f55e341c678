// What makes a choice quick must not change it: multiplications instead of divisions, vectors, and networks
// that are not asked about everything.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <sstream>

#include "command.h"
#include "dispatch/kernel_search.h"
#include "dispatch/selector.h"
#include "dispatch/split_climb.h"
#include "dispatch/split_search.h"
#include "dispatch/ways_by_time.h"
#include "shipped_table.h"
#include "tuner/calibration_problems.h"

namespace gemm {
namespace {

using test::shipped_table;

constexpr double kNever = std::numeric_limits<double>::infinity();  // no kernel is hopeless

std::array<uint32_t, kKernelsAtOnce> bits_of(const LaneRow& row) {
  return std::bit_cast<std::array<uint32_t, kKernelsAtOnce>>(row);
}

TEST(Divisor, RoundsUpAsIntegersDo) {
  for (int64_t divisor = 1; divisor <= 600; ++divisor) {
    const Divisor by(static_cast<double>(divisor));
    for (const int64_t quotient : {1, 2, 3, 7, 1000, 65537, 1 << 20})
      for (int64_t n = std::max<int64_t>(1, quotient * divisor - 1); n <= quotient * divisor + 1; ++n) {
        const int64_t parts = (n + divisor - 1) / divisor;
        EXPECT_EQ(by.parts(static_cast<double>(n)), static_cast<double>(parts)) << n << " / " << divisor;
      }
  }
}

TEST(KernelSearch, FindsWaysThatTakeWhatTheCostModelSaysByTheBestReduction) {
  const Table& table = shipped_table();
  for (const PortfolioKernel& kernel : table.portfolio) {
    const KernelCost cost(kernel.config, table.device);
    KernelGroup group(cost.formula);
    group.add(cost, can_cluster(kernel.config));
    for (const CalibrationProblem& one : calibration_problems(60, false)) {
      if (!may_serve(kernel.config, one.problem)) continue;
      const CostProblem problem(one.problem);
      GroupWays ways;
      kernel_search()(group, problem, static_cast<double>(kWorkspaceBytes), kNever, ways);
      const int split = static_cast<int>(ways.split[0]);
      const Reduction reduction = static_cast<Reduction>(static_cast<int>(ways.how[0]));
      const ProductCost product(cost, problem);
      const double us = product.terms(split, reduction).us();
      EXPECT_NEAR(static_cast<double>(ways.us[0]), us, 1e-4 * us) << kernel.id << " on " << one.problem;
      for (const Reduction other : reductions_of(kernel.config, split)) {
        if (!may_run({kernel.config, split, other}, one.problem, table.device, kWorkspaceBytes)) continue;
        // Small clusters are taken without asking (kSmallCluster), which costs next to nothing.
        EXPECT_GT(product.terms(split, other).us(), 0.995 * us) << kernel.id << " on " << one.problem;
      }
    }
  }
}

// Where the split that gives each multiprocessor a block has no workspace, there are smaller ones, and none.
TEST(KernelSearch, FindsAWayWithoutWorkspace) {
  const Table& table = shipped_table();
  for (const PortfolioKernel& kernel : table.portfolio) {
    const KernelCost cost(kernel.config, table.device);
    KernelGroup group(cost.formula);
    group.add(cost, false);
    for (const CalibrationProblem& one : calibration_problems(60, false)) {
      if (!may_run({kernel.config, 1, Reduction::ticket}, one.problem, table.device, 0)) continue;
      GroupWays ways;
      kernel_search()(group, CostProblem(one.problem), 0, kNever, ways);
      EXPECT_LT(ways.us[0], std::numeric_limits<float>::infinity()) << kernel.id << " on " << one.problem;
    }
  }
}

// Wide vectors or not: the last bit is the same, so that a choice does not depend on the CPU.
TEST(KernelSearch, SaysTheSameOnEachCpu) {
  const Table& table = shipped_table();
  for (size_t first = 0; first < table.portfolio.size(); ++first) {
    const Formula formula = formula_of(table.portfolio[first].config);
    KernelGroup group(formula);
    for (size_t i = first; i < table.portfolio.size() && group.count < kKernelsAtOnce; ++i) {
      const KernelConfig& config = table.portfolio[i].config;
      if (formula_of(config) == formula) group.add(KernelCost(config, table.device), can_cluster(config));
    }
    for (const CalibrationProblem& one : calibration_problems(100, false)) {
      const CostProblem problem(one.problem);
      GroupWays here, narrow;
      kernel_search()(group, problem, 1e7, 50, here);
      narrow_kernel_search()(group, problem, 1e7, 50, narrow);
      for (const auto row : {&GroupWays::fixed, &GroupWays::compute, &GroupWays::memory, &GroupWays::latency,
                             &GroupWays::reduction, &GroupWays::us, &GroupWays::split, &GroupWays::how})
        EXPECT_EQ(bits_of(here.*row), bits_of(narrow.*row)) << table.portfolio[first].id << " on " << one.problem;
    }
  }
}

// What is slower than that stays where it begins; the rest is found as ever.
TEST(KernelSearch, LeavesHopelessKernelsWhereTheyBegin) {
  const Table& table = shipped_table();
  int slower = 0;
  for (const PortfolioKernel& kernel : table.portfolio) {
    const KernelCost cost(kernel.config, table.device);
    KernelGroup group(cost.formula);
    group.add(cost, can_cluster(kernel.config));
    for (const CalibrationProblem& one : calibration_problems(60, false)) {
      GroupWays found, early, late;
      const CostProblem problem(one.problem);
      kernel_search()(group, problem, 1e7, kNever, found);
      kernel_search()(group, problem, 1e7, 0, early);
      kernel_search()(group, problem, 1e7, 1.001 * static_cast<double>(early.us[0]), late);
      EXPECT_EQ(bits_of(late.us), bits_of(found.us)) << kernel.id << " on " << one.problem;
      EXPECT_GE(early.us[0], found.us[0]) << kernel.id << " on " << one.problem;
      slower += early.us[0] > found.us[0] ? 1 : 0;
    }
  }
  EXPECT_GT(slower, 0);
}

// The climb works its way up and down without a table.
TEST(KernelSearch, StepsFromEachSearchedSplitToTheNext) {
  for (size_t i = 0; i + 1 < kSearchedSplits.size(); ++i) {
    const double low = kSearchedSplits[i], high = kSearchedSplits[i + 1];
    EXPECT_EQ(low + cost::step_up(low), high);
    EXPECT_EQ(high - cost::step_down(high), low);
  }
}

// As learned_model.h states it.
double log_ratio(const TimeNetwork& network, const ProblemInputs& problem, const FirstLayer& traits,
                 const ChoiceInputs& choice) {
  double result = static_cast<double>(network.last_bias);
  std::array<double, kFirstLayer> first;
  for (size_t i = 0; i < kFirstLayer; ++i) {
    first[i] = static_cast<double>(traits[i]);
    for (size_t j = 0; j < kProblemInputs; ++j) first[i] += static_cast<double>(problem[j] * network.problem[j][i]);
    for (size_t j = 0; j < kChoiceInputs; ++j) first[i] += static_cast<double>(choice[j] * network.choice[j][i]);
  }
  for (size_t i = 0; i < kSecondLayer; ++i) {
    auto sum = static_cast<double>(network.second_bias[i]);
    for (size_t j = 0; j < kFirstLayer; ++j) sum += std::max(0.0, first[j]) * static_cast<double>(network.second[j][i]);
    result += std::max(0.0, sum) * static_cast<double>(network.last[i]);
  }
  return std::clamp(result, -2.0, 2.0);
}

// What a network says of a few choices: by the functions for this CPU, and by those for any.
struct Answers {
  static constexpr size_t kCount = 7;
  std::array<float, kCount> here, narrow;
};

Answers answers_of(const TimeNetwork& network, const FirstLayer& traits) {
  std::vector<FirstLayer> of_problems;
  ChoiceInputRows inputs;
  for (size_t i = 0; i < Answers::kCount; ++i) {
    const CostProblem problem(packed_problem(100 + 777 * static_cast<int>(i), 512, 300));
    of_problems.push_back(network.of_problem(NonZeroInputs(problem_inputs(problem))));
    for (size_t j = 0; j < kChoiceInputs; ++j) inputs[j][i] = static_cast<float>((i * 31 + j * 17) % 13) / 7.F - 0.5F;
  }
  std::vector<NetworkQuestion> questions;
  for (size_t i = 0; i < of_problems.size(); ++i) questions.push_back({of_problems[i].data(), traits.data(), &inputs[0][i]});
  Answers answers;
  network.log_ratios(questions, answers.here.data());
  const NetworkWeights weights{network.first_layer,        network.choice.front().data(), network.second.front().data(),
                               network.second_bias.data(), network.last.data(),           network.last_bias};
  network_functions<4>().ask(weights, questions.data(), questions.size(), answers.narrow.data());
  for (float& answer : answers.narrow) answer = std::clamp(answer, -2.F, 2.F);
  return answers;
}

// A network that uses its whole first layer: the second half repeats the first, a little weaker.
TimeNetwork widened(TimeNetwork network) {
  constexpr size_t kHalf = kFirstLayer / 2;
  const auto repeat = [](FirstLayer& layer) {
    for (size_t i = 0; i < kHalf; ++i) layer[kHalf + i] = layer[i] * 0.75F;
  };
  for (FirstLayer& layer : network.problem) repeat(layer);
  for (FirstLayer& layer : network.choice) repeat(layer);
  for (size_t i = 0; i < kHalf; ++i) network.second[kHalf + i] = network.second[i];
  network.first_layer = kFirstLayer;
  return network;
}

// Wide vectors or not: the last bit is the same, so that a choice does not depend on the CPU.
TEST(Networks, SayTheSameOnEachCpu) {
  const TimeNetwork& shipped = shipped_table().learned_model->networks.front();
  const FirstLayer& traits = shipped_table().portfolio.front().traits.front();
  for (const TimeNetwork& network : {shipped, widened(shipped)}) {
    const Answers answers = answers_of(network, traits);
    EXPECT_EQ(answers.here, answers.narrow) << network.first_layer;
  }
  EXPECT_NE(answers_of(shipped, traits).here, answers_of(widened(shipped), traits).here);
}

TEST(Networks, AFirstLayerOf32SaysTheSameAsOneWithZerosBehindIt) {
  TimeNetwork network = shipped_table().learned_model->networks.front();
  const FirstLayer& traits = shipped_table().portfolio.front().traits.front();
  for (FirstLayer& layer : network.problem) std::fill(layer.begin() + kOlderFirstLayer, layer.end(), 0.F);
  for (FirstLayer& layer : network.choice) std::fill(layer.begin() + kOlderFirstLayer, layer.end(), 0.F);
  for (size_t i = kOlderFirstLayer; i < kFirstLayer; ++i) network.second[i].fill(0);
  network.first_layer = kOlderFirstLayer;
  const Answers older = answers_of(network, traits);
  network.first_layer = kFirstLayer;
  EXPECT_EQ(older.here, answers_of(network, traits).here);
  EXPECT_EQ(older.narrow, answers_of(network, traits).narrow);
}

// To within what floats lose on a million blocks, far less than the coarse logarithms do.
TEST(ChoiceInputs, AreTheSameSideBySide) {
  const Table& table = shipped_table();
  for (const PortfolioKernel& kernel : table.portfolio) {
    const KernelCost cost(kernel.config, table.device);
    const cost::KernelNumbers<double>& numbers = cost.numbers;
    for (const CalibrationProblem& one : calibration_problems(60, false)) {
      const CostProblem problem(one.problem);
      ChoiceRows rows{};
      std::array<ChoiceInputs, kKernelsAtOnce> expected;
      for (size_t lane = 0; lane < kKernelsAtOnce; ++lane) {
        const auto split = static_cast<int>(1 + 3 * lane);
        const auto reduction = static_cast<Reduction>(lane % 4);
        const CostTerms terms = {2.5, 7.0 + static_cast<double>(lane), 3, 0.5, lane % 2 == 0 ? 0 : 1.5};
        expected[lane] = choice_inputs(cost, problem, split, reduction, terms);
        const auto put = [&](LaneRow& row, double value) { row[lane] = static_cast<float>(value); };
        put(rows.BM, numbers.BM), put(rows.BN, numbers.BN), put(rows.BK, numbers.BK);
        put(rows.by_BM, numbers.by_BM.inverse), put(rows.by_BN, numbers.by_BN.inverse);
        GroupWays& ways = rows.ways;
        put(ways.fixed, terms.fixed), put(ways.compute, terms.compute), put(ways.memory, terms.memory);
        put(ways.latency, terms.latency), put(ways.reduction, terms.reduction), put(ways.us, terms.us());
        put(ways.split, split), put(ways.how, static_cast<double>(reduction));
      }
      ChoiceInputRows inputs;
      choice_inputs(rows, problem, numbers.sm_count, inputs);
      for (size_t lane = 0; lane < kKernelsAtOnce; ++lane)
        for (size_t i = 0; i < kChoiceInputs; ++i)
          EXPECT_NEAR(inputs[i][lane], expected[lane][i], 1e-4)
              << "input " << i << " of " << kernel.id << " on " << one.problem;
    }
  }
}

TEST(WaysByTime, AreTakenFastestFirstUpToALimit) {
  WaysByTime<2> ways;
  EXPECT_EQ(ways.least_us(), kNever);
  ways.groups[0].us = {{5, 3, 9, 1, 1, 1, 1, 1}};  // of which three matter
  ways.add({0, 0}, 3, 0);
  ways.groups[1].us = {{2, std::numeric_limits<float>::infinity(), 1, 1, 1, 1, 1, 1}};
  ways.add({1, 0}, 2, 4);
  EXPECT_NEAR(ways.least_us(), 3, 1e-3);
  EXPECT_EQ(ways.take(kNever), 1U);
  EXPECT_EQ(ways.take(5.5), 0U);
  EXPECT_EQ(ways.take(5.5), std::nullopt) << "the next one takes 2 and 4 for copies";
  EXPECT_EQ(ways.take(6.5), kKernelsAtOnce);
  EXPECT_EQ(ways.take(kNever), 2U);
  EXPECT_EQ(ways.take(kNever), std::nullopt);
}

// The linker keeps one copy of an inline function, whoever compiled it: what other files have too must not be there in
// instructions that not every CPU has.
TEST(WideVectors, ShareNoFunctionWithOtherFiles) {
  const std::string objects = GEMM_WIDE_OBJECTS;
  if (objects.empty()) GTEST_SKIP() << "no wide vectors on this processor";
  const test::CommandResult symbols = test::run_command("nm -C --defined-only " + objects);
  ASSERT_EQ(symbols.exit_code, 0) << symbols.output;
  std::istringstream lines(symbols.output);
  int shared = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" W ") == std::string::npos && line.find(" V ") == std::string::npos) continue;
    EXPECT_NE(line.find("<8ul"), std::string::npos) << line;
    ++shared;
  }
  EXPECT_GT(shared, 0) << "nothing was looked at:\n" << symbols.output;
}

// The networks have seen neither; of cuBLAS they would promise what no GPU can do.
TEST(Selector, CublasIsNotChosenOnPromisesThatNoGpuKeeps) {
  const Table& table = shipped_table();
  const Selector selector(&table, table.device);
  for (const Problem& p : {packed_problem(1, 1, 1, Op::N, Op::N, 262144), packed_problem(4, 4, 4, Op::N, Op::N, 65536)})
    EXPECT_FALSE(selector.choose(p, kWorkspaceBytes).candidates.front().use_cublas) << p;
  const Problem huge = packed_problem(100000, 100000, 100000);
  for (const Candidate& candidate : selector.choose(huge, kWorkspaceBytes).candidates) {
    if (candidate.use_cublas && candidate.rule == Rule::predicted) {
      EXPECT_GE(candidate.predicted_us, floor_us(table.device, huge));
    }
  }
}

// A program may have asked for a signal where a number is divided by zero.
TEST(Selector, DividesByNoZero) {
  const Table& table = shipped_table();
  const Selector selector(&table, table.device);
  std::feclearexcept(FE_ALL_EXCEPT);
  for (const CalibrationProblem& one : calibration_problems(200, false)) selector.choose(one.problem, kWorkspaceBytes);
  selector.choose(packed_problem(1, 1, 1), 0);
  EXPECT_EQ(std::fetestexcept(FE_DIVBYZERO), 0);
}

TEST(Selector, PredictsByTheMeanOfAllNetworks) {
  const Table& table = shipped_table();
  const Selector selector(&table, table.device);
  int kernels = 0;
  for (const CalibrationProblem& one : calibration_problems(200, false)) {
    const Decision decision = selector.choose(one.problem, kWorkspaceBytes);
    const auto chosen = std::find_if(decision.candidates.begin(), decision.candidates.end(),
                                     [](const Candidate& c) { return c.rule == Rule::predicted && !c.use_cublas; });
    if (chosen == decision.candidates.end()) continue;
    const Choice& choice = chosen->choice;
    const auto kernel = std::find_if(table.portfolio.begin(), table.portfolio.end(),
                                     [&](const PortfolioKernel& k) { return k.config == choice.config; });
    const KernelCost cost(choice.config, table.device);
    const CostProblem problem(relaid_problem(choice.relayout, one.problem));
    const ProductCost product(cost, problem);
    const CostTerms terms = product.terms(choice.split_k, choice.reduction);
    const ChoiceInputs inputs = choice_inputs(cost, problem, choice.split_k, choice.reduction, terms);
    double sum = 0;
    for (size_t i = 0; i < table.learned_model->networks.size(); ++i)
      sum += log_ratio(table.learned_model->networks[i], problem_inputs(problem), kernel->traits[i], inputs);
    const double us = terms.us() * std::exp(sum / static_cast<double>(table.learned_model->networks.size())) +
                      relayout_us(table.device, choice.relayout, one.problem);
    EXPECT_NEAR(chosen->predicted_us, us, 1e-4 * us) << to_string(choice) << " for " << one.problem;
    ++kernels;
  }
  EXPECT_GT(kernels, 150);
}

}  // namespace
}  // namespace gemm
