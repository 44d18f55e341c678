#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "dispatch/cost_model.h"
#include "emulator/emulated_device.h"
#include "kernels/kernel_spec.h"
#include "tuner/candidates.h"
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
      EXPECT_EQ(why_illegal(choice, problem, h200(), kWorkspaceBytes), "") << to_string(choice);
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

TEST(Candidates, HaveTheKernelsThatThePrototypesWonWith) {
  const struct {
    Problem problem;
    size_t among;
    bool (*wanted)(const Choice&);
  } cases[] = {
      {packed_problem(4096, 4096, 4096), 10,
       [](const Choice& c) { return is_specialized(c.config.load) && c.config.BM * c.config.BN == 256 * 128; }},
      {packed_problem(4096, 16, 4096, Op::T, Op::N), 64,
       [](const Choice& c) {
         return c.config.load == LoadPath::tma && c.config.BM == 128 && c.config.BN == 16 && c.config.slices > 1;
       }},
      {packed_problem(513, 513, 513), 64, [](const Choice& c) { return is_specialized(c.config.load); }},
      {packed_problem(3072, 3072, 3072), 10, [](const Choice& c) { return c.reduction == Reduction::stream_k; }},
      {packed_problem(1024, 1024, 1024), 16,
       [](const Choice& c) { return is_specialized(c.config.load) && c.config.slices > 1 && c.split_k == 1; }},
  };
  CandidateRanker ranker(h200(), shipped_configs(), {}, 64);
  for (const auto& c : cases) {
    std::vector<Choice> choices = ranker.candidates(c.problem);
    choices.resize(std::min(choices.size(), c.among));
    EXPECT_TRUE(std::any_of(choices.begin(), choices.end(), c.wanted)) << c.problem;
  }
}

TEST(Candidates, StreamKernelsServeVectorsAndBatchKernelsTinyMatrices) {
  const struct {
    Family family;
    Problem problem;
  } cases[] = {{Family::stream, packed_problem(4096, 1, 4096, Op::T, Op::N)},
               {Family::batch, packed_problem(16, 16, 16, Op::N, Op::N, 4096)}};
  CandidateRanker ranker(h200(), shipped_configs(), {}, 64);
  for (const auto& c : cases) {
    const auto is_family = [&](const KernelConfig& config) { return config.family == c.family; };
    if (std::none_of(shipped_configs().begin(), shipped_configs().end(), is_family)) continue;
    const std::vector<Choice> choices = ranker.candidates(c.problem);
    EXPECT_GE(std::count_if(choices.begin(), choices.end(), [&](const Choice& choice) { return is_family(choice.config); }),
              4)
        << c.problem;
  }
}

// Kinds of kernels that the model puts near the best all get a few candidates.
TEST(Candidates, KeepEveryKindThatIsNearTheBest) {
  CandidateRanker ranker(h200(), shipped_configs(), {}, 64);
  for (const Problem& problem : kProblems) {
    const std::vector<Choice> choices = ranker.candidates(problem);
    std::map<LoadPath, double> best;
    for (const KernelConfig& config : shipped_configs())
      if (const auto predicted = ranker.best_split(config, problem)) {
        const auto [place, is_new] = best.emplace(config.load, predicted->us);
        if (!is_new) place->second = std::min(place->second, predicted->us);
      }
    double overall = best.begin()->second;
    for (const auto& [load, us] : best) overall = std::min(overall, us);
    for (const LoadPath load : {LoadPath::tma, LoadPath::warp_specialized, LoadPath::warp_specialized_k}) {
      const auto same = [&](const Choice& choice) { return choice.config.load == load; };
      // Operands that are not aligned make tma the same as async, and _k the same as without.
      const bool distinct =
          load == LoadPath::warp_specialized || (problem.m % 4 == 0 && problem.n % 4 == 0 && problem.k % 4 == 0);
      const bool near = distinct && best[load] < 1.3 * overall;
      EXPECT_GE(std::count_if(choices.begin(), choices.end(), same), near ? 3 : 0) << problem << ", " << to_string(load);
    }
  }
}

TEST(Candidates, TensorCopiesOfUnalignedOperandsAreNotTriedBesideAsync) {
  KernelConfig async{64, 64, 32, 64, 32, 1, 8, 8, 4, 2};
  async.load = LoadPath::async;
  KernelConfig tma = async;
  tma.load = LoadPath::tma;
  CandidateRanker ranker(h200(), {async, tma}, {}, 8);
  const auto has_tma = [](const std::vector<Choice>& choices, Relayout relayout) {
    return std::any_of(choices.begin(), choices.end(),
                       [&](const Choice& c) { return c.config.load == LoadPath::tma && c.relayout == relayout; });
  };
  EXPECT_TRUE(has_tma(ranker.candidates(packed_problem(512, 512, 512)), Relayout::none));
  const std::vector<Choice> odd = ranker.candidates(packed_problem(513, 513, 513));
  EXPECT_FALSE(has_tma(odd, Relayout::none));
  EXPECT_FALSE(has_tma(odd, Relayout::a)) << "B stays as it is";
  EXPECT_TRUE(has_tma(odd, Relayout::ab));
}

TEST(Candidates, StreamKOnlyWhereBlocksArePersistentAndWavesAreNotWhole) {
  KernelConfig specialized{256, 128, 16, 64, 64, 4, 4, 4, 4};
  specialized.load = LoadPath::warp_specialized;
  ASSERT_EQ(why_invalid(specialized, h200().limits), nullptr);
  const auto has_stream_k = [](const std::vector<Choice>& choices) {
    return std::any_of(choices.begin(), choices.end(), [](const Choice& c) { return c.reduction == Reduction::stream_k; });
  };
  const Problem ragged = packed_problem(3072, 3072, 3072), whole = packed_problem(256 * 12, 128 * 11, 4096);
  EXPECT_TRUE(has_stream_k(split_neighbours({specialized}, ragged, h200())));
  EXPECT_FALSE(has_stream_k(split_neighbours({specialized}, whole, h200())));
  EXPECT_FALSE(has_stream_k(split_neighbours({shipped_configs().front()}, ragged, h200())));
  const auto best = CandidateRanker(h200(), {specialized}, {}, 8).best_split(specialized, ragged);
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->choice.reduction, Reduction::stream_k);
  EXPECT_EQ(best->choice.split_k, 1);
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
  const std::vector<Choice> neighbours = split_neighbours(choice, problem, h200());
  EXPECT_GE(neighbours.size(), 4u);
  for (const Choice& neighbour : neighbours) {
    EXPECT_EQ(neighbour.config, choice.config);
    EXPECT_NE(neighbour, choice);
    EXPECT_EQ(why_illegal(neighbour, problem, h200(), kWorkspaceBytes), "");
  }
}

KernelConfig with_load(KernelConfig config, LoadPath load) {
  config.load = load;
  return config;
}

TEST(CostModel, PredictsWhatWasMeasuredWithinAQuarter) {
  // Times of prototype kernels with these tiles on an H200 (shared/prototype), in microseconds.
  const LoadPath specialized = LoadPath::warp_specialized;
  const KernelConfig large = with_load({256, 128, 16, 64, 64, 4, 4, 4, 6}, specialized);
  const KernelConfig wave = with_load({128, 64, 32, 64, 32, 2, 4, 4, 4, 2}, specialized);
  const KernelConfig small = with_load({64, 32, 32, 64, 32, 2, 4, 4, 5, 4, 2}, specialized);
  const KernelConfig flat = with_load({128, 16, 64, 128, 16, 1, 8, 8, 4, 8}, LoadPath::tma);
  const struct {
    Choice choice;
    Problem problem;
    double measured_us;
  } cases[] = {
      {{large, 1, Reduction::stream_k}, packed_problem(4096, 4096, 4096), 2484},
      {{large, 1, Reduction::stream_k}, packed_problem(3072, 3072, 3072), 1055},
      {{large, 1, Reduction::stream_k}, packed_problem(1536, 1536, 1536), 148},
      {{wave}, packed_problem(1024, 1024, 1024), 46.8},
      {{wave, 1, Reduction::stream_k}, packed_problem(768, 768, 768), 26.3},
      {{small}, packed_problem(512, 512, 512), 10.6},
      {{with_load({128, 256, 16, 64, 64, 2, 8, 8, 4}, LoadPath::async_transpose)}, packed_problem(4096, 4096, 4096), 2560},
      {{flat, 4, Reduction::kernel}, packed_problem(4096, 16, 4096, Op::T, Op::N), 23.4},
      {{with_load({16, 16, 64, 16, 16, 1, 2, 4, 5, 4}, LoadPath::async)}, packed_problem(128, 128, 128), 2.7},
  };
  for (const auto& c : cases) {
    const double us = predicted_us(h200(), c.choice, c.problem);
    EXPECT_GT(us, c.measured_us / 1.25) << to_string(c.choice);
    EXPECT_LT(us, c.measured_us * 1.25) << to_string(c.choice);
    EXPECT_GE(us, floor_us(h200(), c.problem));
  }
}

TEST(CostModel, KnowsWhereClustersPay) {
  const auto ratio = [](const KernelConfig& config, int split, const Problem& problem) {
    return predicted_us(h200(), {config, split, Reduction::cluster}, problem) /
           predicted_us(h200(), {config, split, Reduction::ticket}, problem);
  };
  // Several blocks to a multiprocessor, a few splits.
  const KernelConfig square{32, 32, 32, 16, 32, 1, 4, 4, 4, 2, 2, LoadPath::async};
  EXPECT_LT(ratio(square, 2, packed_problem(512, 512, 512)), 1);
  EXPECT_LT(ratio(square, 4, packed_problem(160, 160, 2048)), 1);
  // One block to a multiprocessor: measured on an H200, 128 of them took 40.3 us as clusters of 4 and 23.7 us with tickets.
  const KernelConfig flat = with_load({128, 16, 64, 128, 16, 1, 8, 8, 4, 8}, LoadPath::tma);
  EXPECT_GT(ratio(flat, 4, packed_problem(4096, 16, 4096, Op::T, Op::N)), 1.1);
}

TEST(CostModel, KnowsVectorsAndTinyMatrices) {
  KernelConfig stream{32, 1, 512, 8, 1, 1, 4, 1, 2, 4};
  stream.family = Family::stream;
  stream.load = LoadPath::register_staged;
  KernelConfig batch{16, 16, 16, 16, 16, 1, 4, 2, 2, 4};
  batch.family = Family::batch;
  const double vector_us = predicted_us(h200(), {stream}, packed_problem(4096, 1, 4096, Op::T, Op::N));
  EXPECT_GT(vector_us, 15);
  EXPECT_LT(vector_us, 28);
  EXPECT_GT(predicted_us(h200(), {stream}, packed_problem(4096, 64, 4096, Op::T, Op::N)), 2 * 58) << "a tile is faster";
  const double tiny_us = predicted_us(h200(), {batch}, packed_problem(16, 16, 16, Op::N, Op::N, 4096));
  EXPECT_GT(tiny_us, 3.5);
  EXPECT_LT(tiny_us, 7);
}

}  // namespace
}  // namespace gemm
