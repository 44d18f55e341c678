// Which kernel serves a problem: exact, predicted, nearest, default, cuBLAS; each one legal.
#include "dispatch/selector.h"

#include <gtest/gtest.h>

#include <limits>

#include "dispatch/explain.h"
#include "dispatch/table_search.h"
#include "dispatch_cases.h"

namespace gemm::test {
namespace {

constexpr int64_t kWorkspace = 32 << 20;

DeviceInfo h200() { return default_emulator_options().info; }

// Three points with kernels 0, 1 and 2 of the emulated ones.
Table three_points() {
  Table table = table_of(h200(), {emulated_configs()[0], 1, Reduction::ticket}, {packed_problem(64, 64, 64)});
  for (const auto& [index, problem] :
       {std::pair{1, packed_problem(1024, 1024, 1024)}, std::pair{2, packed_problem(1024, 16, 4096, Op::T, Op::N)}}) {
    const Table one = table_of(h200(), {emulated_configs()[static_cast<size_t>(index)], 1, Reduction::ticket}, {problem});
    table.points.push_back(one.points[0]);
    table.portfolio.push_back(one.portfolio[0]);
  }
  return table;
}

Candidate first(const Table& table, const Problem& problem, int64_t workspace = kWorkspace) {
  return choose(&table, problem, h200(), workspace).candidates.front();
}

TEST(Selector, ExactPointWins) {
  const Table table = three_points();
  for (size_t i = 0; i < 3; ++i) {
    const Candidate chosen = first(table, table.points[i].problem);
    EXPECT_EQ(chosen.rule, Rule::exact);
    EXPECT_EQ(chosen.choice.config, emulated_configs()[i]);
    EXPECT_EQ(chosen.distance, 0);
  }
}

TEST(Selector, NearestPointInLogSpace) {
  const Table table = three_points();
  const struct {
    Problem problem;
    size_t config;
  } cases[] = {{packed_problem(65, 64, 64), 0},
               {packed_problem(1, 1, 1), 0},
               {packed_problem(100000, 100000, 8), 1},
               {packed_problem(1024, 16, 4096), 2},  // another op, one octave away
               {packed_problem(64, 64, 64, Op::N, Op::N, 2), 0},
               {packed_problem(2048, 8, 8192, Op::T, Op::T), 2}};
  for (const auto& c : cases) {
    const Candidate chosen = first(table, c.problem);
    EXPECT_EQ(chosen.rule, Rule::nearest);
    EXPECT_EQ(chosen.choice.config, emulated_configs()[c.config]) << c.problem;
    EXPECT_GT(chosen.distance, 0);
  }
}

// Kernels with a factor are chosen by predicted time; the points come after them.
TEST(Selector, CalibratedKernelsServeUntunedProblems) {
  Table table = three_points();
  for (PortfolioKernel& kernel : table.portfolio) kernel.model_factor = 1;
  const Problem p = packed_problem(700, 300, 200);
  for (const Candidate& c : choose(&table, table.points[1].problem, h200(), kWorkspace).candidates)
    EXPECT_NE(c.rule, Rule::predicted) << "a tuned problem needs no prediction";
  const Candidate before = first(table, p);
  ASSERT_EQ(before.rule, Rule::predicted);
  EXPECT_GT(before.predicted_us, 0);
  for (PortfolioKernel& kernel : table.portfolio)
    if (kernel.config == before.choice.config) kernel.model_factor = 1000;
  const Decision after = choose(&table, p, h200(), kWorkspace);
  EXPECT_EQ(after.candidates.front().rule, Rule::predicted);
  EXPECT_NE(after.candidates.front().choice.config, before.choice.config) << "a slow kernel is not chosen";
  ASSERT_EQ(after.candidates[1].rule, Rule::predicted) << "another one, for when the first cannot be built";
  EXPECT_GE(after.candidates[1].predicted_us, after.candidates[0].predicted_us) << "fastest first";
}

// Traits with which the network below says that times are this much longer.
FirstLayer slower(float factor) {
  FirstLayer traits{};
  traits[factor > 1 ? 0 : 1] = std::abs(std::log(factor));
  return traits;
}

// Kernels as the cost model has them. The first two places of the traits make the time longer and shorter, whatever the
// problem, and the third makes it longer where m is large.
Table with_network(Table table) {
  TimeNetwork network;
  network.problem[0][2] = 1;
  for (size_t i = 0; i < 3; ++i) network.second[i][i] = 1;
  network.last[0] = 1, network.last[1] = -1, network.last[2] = 0.2F;
  for (PortfolioKernel& kernel : table.portfolio) {
    kernel.traits = {slower(1)};
    kernel.traits[0][2] = -1000;  // but for the one that a test cares for
  }
  table.learned_model = LearnedModel{{network}, 1};
  return table;
}

TEST(Selector, CublasServesWhereItIsPredictedToBeClearlyFaster) {
  Table table = with_network(three_points());
  const Problem p = packed_problem(700, 300, 200);
  EXPECT_FALSE(first(table, p).use_cublas) << "nothing is known of cuBLAS";
  std::optional<FirstLayer>& cublas = table.learned_model->networks[0].cublas;
  cublas = slower(0.1F);
  (*cublas)[2] = -1000;
  const Decision decision = choose(&table, p, h200(), kWorkspace);
  EXPECT_TRUE(decision.candidates[0].use_cublas);
  EXPECT_EQ(decision.candidates[0].rule, Rule::predicted);
  EXPECT_GT(decision.candidates[0].predicted_us, 0);
  EXPECT_FALSE(decision.candidates[1].use_cublas) << "a kernel, for where there is no cuBLAS";
  EXPECT_NE(explain(p, decision, "t").find("cuBLAS"), std::string::npos);
  *cublas = slower(7);
  EXPECT_FALSE(first(table, p).use_cublas);
}

TEST(Selector, NetworksCorrectThePredictionByKernelAndProblem) {
  Table table = with_network(three_points());
  const Problem small = packed_problem(300, 300, 200), tall = packed_problem(30000, 300, 200);
  const Candidate before = first(table, tall), small_before = first(table, small);
  ASSERT_EQ(before.rule, Rule::predicted);
  for (PortfolioKernel& kernel : table.portfolio)
    if (kernel.config == before.choice.config) kernel.traits[0][2] = -10;  // longer from m = 1024 on
  EXPECT_NE(first(table, tall).choice.config, before.choice.config);
  EXPECT_EQ(first(table, small).choice, small_before.choice);
  EXPECT_DOUBLE_EQ(first(table, small).predicted_us, small_before.predicted_us);
}

// Several networks are asked in turn, and their mean counts.
TEST(Selector, TheMeanOfTheNetworksCounts) {
  Table table = with_network(three_points());
  const Problem p = packed_problem(700, 300, 200);
  const Candidate before = first(table, p);
  table.learned_model->networks.push_back(table.learned_model->networks[0]);
  for (PortfolioKernel& kernel : table.portfolio) kernel.traits.push_back(slower(1.21F)), kernel.traits[1][2] = -1000;
  EXPECT_EQ(first(table, p).choice, before.choice);
  EXPECT_NEAR(first(table, p).predicted_us / before.predicted_us, 1.1, 1e-3);
  for (PortfolioKernel& kernel : table.portfolio) kernel.traits.pop_back();
  EXPECT_NE(first(table, p).rule, Rule::predicted) << "traits for each network, or none";
}

// A point is packed. Where leading dimensions align the operands in another way, the model chooses, and the point comes
// after.
TEST(Selector, ATunedProblemThatIsAlignedOtherwiseIsPredicted) {
  Table table = three_points();
  for (PortfolioKernel& kernel : table.portfolio) kernel.model_factor = 1;
  const Problem tuned = table.points.front().problem;
  const auto rule_of = [&](int64_t pad) {
    Problem p = tuned;
    p.lda += pad;
    return choose(&table, p, h200(), kWorkspace).candidates.front().rule;
  };
  EXPECT_EQ(rule_of(0), Rule::exact);
  EXPECT_EQ(rule_of(4), Rule::exact);
  EXPECT_EQ(rule_of(1), Rule::predicted);
  for (PortfolioKernel& kernel : table.portfolio) kernel.model_factor.reset();
  EXPECT_EQ(rule_of(1), Rule::exact) << "nothing can be predicted";
}

TEST(Selector, DistanceIsInOctaves) {
  EXPECT_DOUBLE_EQ(distance(packed_problem(64, 64, 64), packed_problem(128, 64, 64)), 1);
  EXPECT_DOUBLE_EQ(distance(packed_problem(64, 64, 64), packed_problem(512, 1024, 64)), 5);
  EXPECT_DOUBLE_EQ(distance(packed_problem(64, 64, 64), packed_problem(64, 64, 64, Op::N, Op::N, 4)), 2);
  EXPECT_DOUBLE_EQ(distance(packed_problem(64, 64, 64), packed_problem(64, 64, 64, Op::T, Op::T)), 2);
}

TEST(Selector, IllegalPointsAreSkippedWithTheReason) {
  Table table = three_points();
  table.points[0].split_k = 4;
  table.points[0].problem = packed_problem(64, 64, 4096);
  const Decision decision = choose(&table, packed_problem(64, 64, 4096), h200(), 0);
  EXPECT_EQ(decision.candidates.front().rule, Rule::nearest);
  ASSERT_FALSE(decision.rejected.empty());
  EXPECT_NE(decision.rejected[0].find("workspace"), std::string::npos) << decision.rejected[0];
}

TEST(Selector, EveryOfferedKernelIsLegal) {
  const Table table = three_points();
  DeviceInfo turing = h200();
  turing.limits = {75, 65536, 65536, 65536, 1024};
  for (const DeviceInfo& device : {h200(), turing})
    for (const Problem& p : {packed_problem(64, 64, 64), packed_problem(1, 1, 1 << 20), packed_problem(1 << 20, 3, 1)})
      for (const Candidate& c : choose(&table, p, device, kWorkspace).candidates)
        EXPECT_EQ(c.use_cublas ? "" : why_illegal(c.choice, p, device, kWorkspace), "") << to_string(c);
}

TEST(Selector, WithoutATableDefaultsServeAnyGpu) {
  DeviceInfo turing = h200();
  turing.limits = {75, 65536, 65536, 65536, 1024};
  for (const KernelConfig& config : default_configs()) EXPECT_EQ(why_invalid(config, turing.limits), nullptr);
  const struct {
    Problem problem;
    size_t config;
  } cases[] = {{packed_problem(4096, 4096, 64), 0},
               {packed_problem(1024, 1024, 64), 1},
               {packed_problem(16, 16, 64), 2},
               {packed_problem(128, 128, 64, Op::N, Op::N, 200), 0}};
  for (const auto& c : cases) {
    const Decision decision = choose(nullptr, c.problem, turing, kWorkspace);
    EXPECT_EQ(decision.candidates.front().rule, Rule::fallback);
    EXPECT_EQ(decision.candidates.front().choice.config, default_configs()[c.config]) << c.problem;
    EXPECT_EQ(decision.candidates.size(), default_configs().size() + 1);
    EXPECT_EQ(decision.candidates.back().rule, Rule::cublas);
  }
}

TEST(Selector, CublasPointMeansCublasThenItsOwnKernel) {
  Table table = three_points();
  table.points[1].use_cublas = true;
  const Decision decision = choose(&table, table.points[1].problem, h200(), kWorkspace);
  EXPECT_TRUE(decision.candidates[0].use_cublas);
  EXPECT_EQ(decision.candidates[0].rule, Rule::exact);
  EXPECT_FALSE(decision.candidates[1].use_cublas);
  EXPECT_EQ(decision.candidates[1].choice.config, emulated_configs()[1]);
  table.points[1].kernel.clear();
  EXPECT_TRUE(first(table, table.points[1].problem).use_cublas);
}

TEST(Selector, BeyondInt32OnlyCublasIsLeft) {
  const Table table = three_points();
  const Decision decision = choose(&table, packed_problem(int64_t{1} << 32, 8, 8), h200(), kWorkspace);
  ASSERT_EQ(decision.candidates.size(), 1u);
  EXPECT_EQ(decision.candidates[0].rule, Rule::cublas);
  EXPECT_FALSE(decision.rejected.empty());
}

TEST(Selector, TheSameQuestionHasTheSameAnswer) {
  const Table table = three_points();
  const Problem p = packed_problem(300, 300, 300);
  const Decision once = choose(&table, p, h200(), kWorkspace), again = choose(&table, p, h200(), kWorkspace);
  ASSERT_EQ(once.candidates.size(), again.candidates.size());
  for (size_t i = 0; i < once.candidates.size(); ++i)
    EXPECT_EQ(to_string(once.candidates[i]), to_string(again.candidates[i]));
}

TEST(Explain, SaysRuleKernelTimeAndAlternatives) {
  Table table = three_points();
  table.points[0].cublas_us = 12;
  const Problem p = packed_problem(128, 64, 64);
  const std::string text = explain(p, choose(&table, p, h200(), kWorkspace), describe_source(table, "t.json", h200()));
  for (const char* part :
       {"problem    128x64x64 NN", "nearest, 1.00 octaves from 64x64x64 NN", "10 us, cuBLAS 12 us (at that point)",
        "t.json (modelled on Emulated GPU; exact)", "considered", "default: tile_"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
}

TEST(TableSearch, OwnNameFirstThenTheBestOfTheSameCapability) {
  const TemporaryFolder folder;
  const auto save = [&](const std::string& name, int sm_count, int capability) {
    Table table = three_points();
    table.device.sm_count = sm_count;
    table.device.limits.compute_capability = capability;
    save_table(table, folder.file(name)).value_or_throw();
  };
  std::vector<std::string> warnings;
  const auto found = [&] {
    warnings.clear();
    const std::optional<FoundTable> table = search_tables({folder.file("missing"), folder.path()}, h200(), &warnings);
    return table ? std::filesystem::path(table->path).filename().string() : "";
  };
  EXPECT_EQ(found(), "");
  save("old.json", 132, 80);
  EXPECT_EQ(found(), "") << "an older GPU's table is not borrowed unasked";
  save("small.json", 16, 90);
  EXPECT_EQ(found(), "small.json");
  save("near.json", 114, 90);
  EXPECT_EQ(found(), "near.json");
  save("zz-exact.json", 132, 90);
  EXPECT_EQ(found(), "zz-exact.json");
  save("emulated-gpu.json", 100, 90);
  EXPECT_EQ(found(), "emulated-gpu.json");
  EXPECT_TRUE(warnings.empty());
  std::filesystem::resize_file(folder.file("emulated-gpu.json"), 100);
  EXPECT_EQ(found(), "zz-exact.json");
  EXPECT_EQ(warnings.size(), 1u);
}

}  // namespace
}  // namespace gemm::test
