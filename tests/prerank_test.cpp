#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "emulator/emulated_device.h"
#include "kernels/kernel_spec.h"
#include "tuner/candidates.h"
#include "tuner/cost_model.h"
#include "tuner/shapes.h"
#include "tuner/space.h"

namespace gemm {
namespace {

DeviceInfo h200() {
  return default_emulator_options().info;  // describes one
}

const std::vector<KernelConfig>& shipped_configs() {
  static const std::vector<KernelConfig> configs =
      valid_configs(read_space(GEMM_SOURCE_DIR "/configs/space.json").value_or_throw(), h200().limits);
  return configs;
}

const Problem kProblems[] = {
    packed_problem(64, 64, 64),
    packed_problem(513, 513, 513),
    packed_problem(4096, 4096, 4096),
    packed_problem(4096, 1, 4096, Op::T, Op::N),
    packed_problem(16, 4096, 4096),
    packed_problem(16, 16, 64000, Op::N, Op::T),
    packed_problem(4096, 4096, 16, Op::N, Op::T),
    packed_problem(16, 16, 16, Op::N, Op::N, 4096),
    packed_problem(1000000, 16, 16),
    packed_problem(9, 16, 23040, Op::T, Op::T),
};

TEST(Candidates, AreLegalDistinctAndDiverse) {
  CandidateRanker ranker(h200(), shipped_configs(), {}, 32);
  for (const Problem& problem : kProblems) {
    const std::vector<Choice> choices = ranker.candidates(problem);
    EXPECT_GE(choices.size(), 12u) << problem;
    EXPECT_LE(choices.size(), 32u) << problem;
    std::set<std::string> names;
    std::set<std::pair<int, int>> tiles;
    for (const Choice& choice : choices) {
      EXPECT_EQ(why_illegal(choice, problem, h200().limits, kWorkspaceBytes), "") << to_string(choice);
      EXPECT_EQ(effective_split(choice.config, problem, choice.split_k), choice.split_k);
      EXPECT_TRUE(names.insert(to_string(choice)).second) << "twice: " << to_string(choice);
      tiles.insert({choice.config.BM, choice.config.BN});
    }
    EXPECT_GE(tiles.size(), 4u) << problem;
  }
}

TEST(Candidates, AreTheSameEveryTime) {
  CandidateRanker first(h200(), shipped_configs(), {}, 24), second(h200(), shipped_configs(), {}, 24);
  for (const Problem& problem : kProblems) EXPECT_EQ(first.candidates(problem), second.candidates(problem)) << problem;
}

TEST(Candidates, SuitTheProblem) {
  const struct {
    Problem problem;
    bool (*suits)(const Choice&);
  } cases[] = {
      {packed_problem(4096, 4096, 4096), [](const Choice& c) { return c.config.BM * c.config.BN >= 64 * 128; }},
      {packed_problem(4096, 8, 4096, Op::T, Op::N), [](const Choice& c) { return c.config.BN <= 16; }},
      {packed_problem(16, 16, 64000, Op::N, Op::T), [](const Choice& c) { return c.split_k >= 16; }},
      {packed_problem(4096, 4096, 16), [](const Choice& c) { return c.split_k == 1; }},
  };
  CandidateRanker ranker(h200(), shipped_configs(), {}, 32);
  for (const auto& c : cases) {
    const std::vector<Choice> choices = ranker.candidates(c.problem);
    for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(c.suits(choices.at(i))) << c.problem << ": " << to_string(choices[i]);
  }
}

TEST(Candidates, ProvenConfigurationsComeFirstUnlessHopeless) {
  const KernelConfig proven = shipped_configs().front();
  CandidateRanker ranker(h200(), shipped_configs(), {proven}, 32);
  const CandidateRanker plain(h200(), shipped_configs(), {}, 32);
  for (const Problem& problem : kProblems) {
    const std::vector<Choice> choices = ranker.candidates(problem);
    const auto own = plain.best_split(proven, problem), best = plain.best_split(choices.at(1).config, problem);
    ASSERT_TRUE(own && best);
    EXPECT_TRUE(choices.front().config != proven || own->us < 2 * best->us) << problem;
  }
  const std::vector<Choice> suited = ranker.candidates(packed_problem(proven.BM * 11, proven.BN * 12, 4096));
  EXPECT_EQ(suited.front().config, proven);
}

TEST(Candidates, NothingWhereNothingIsLegal) {
  CandidateRanker ranker(h200(), {}, {}, 32);
  EXPECT_TRUE(ranker.candidates(packed_problem(64, 64, 64)).empty());
}

TEST(Candidates, SplitNeighboursRunTheSameKernel) {
  const Problem problem = packed_problem(256, 256, 16384);
  const Choice choice{shipped_configs().front(), 8, Reduction::ticket};
  const std::vector<Choice> neighbours = split_neighbours(choice, problem, h200().limits);
  EXPECT_GE(neighbours.size(), 4u);
  for (const Choice& neighbour : neighbours) {
    EXPECT_EQ(neighbour.config, choice.config);
    EXPECT_NE(neighbour, choice);
    EXPECT_EQ(why_illegal(neighbour, problem, h200().limits, kWorkspaceBytes), "");
  }
}

TEST(CostModel, PredictsWhatWasMeasuredWithinAFactorOfTwo) {
  // Times of prototype kernels with these tiles on an H200 (shared/prototype), in microseconds.
  const KernelConfig large{128, 256, 16, 64, 64, 2, 8, 8, 4};
  const KernelConfig flat{128, 16, 64, 128, 16, 1, 8, 8, 4, 8};
  const KernelConfig tiny{16, 16, 64, 16, 16, 1, 2, 4, 5, 4};
  const struct {
    Choice choice;
    Problem problem;
    double measured_us;
  } cases[] = {
      {{large}, packed_problem(4096, 4096, 4096), 2490},
      {{flat, 4, Reduction::kernel}, packed_problem(4096, 16, 4096), 23},
      {{tiny}, packed_problem(128, 128, 128), 2.3},
  };
  for (const auto& c : cases) {
    const double us = predicted_us(h200(), c.choice, c.problem);
    EXPECT_GT(us, c.measured_us / 2) << to_string(c.choice);
    EXPECT_LT(us, c.measured_us * 2) << to_string(c.choice);
    EXPECT_GE(us, floor_us(h200(), c.problem));
  }
}

}  // namespace
}  // namespace gemm
