// From trials to points, ties and portfolio.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/kernel_spec.h"
#include "tuner/points.h"
#include "tuner/portfolio.h"
#include "tuner/statistics.h"
#include "tuner/table_builder.h"

namespace gemm {
namespace {

KernelConfig config(int stages) {
  KernelConfig c;
  c.stages = stages;
  return c;
}

std::string id(int stages) { return config_id(config(stages)); }

Trial timed(const Choice& choice, double us, Stage stage = Stage::finals) {
  Trial trial;
  trial.choice = choice;
  trial.stage = stage;
  trial.outcome.times_us = {us, us, us};
  return trial;
}

Evidence evidence_of(std::vector<Trial> trials, int64_t m = 64) {
  Evidence evidence;
  evidence.problem = packed_problem(m, 64, 64);
  evidence.trials = std::move(trials);
  evidence.finished = true;
  return evidence;
}

TEST(Statistics, MedianAndQuantiles) {
  const TimeStats stats = summarise({5, 1, 4, 2, 3, 6});
  EXPECT_DOUBLE_EQ(stats.median, 3.5);
  EXPECT_DOUBLE_EQ(stats.p20, 2);
  EXPECT_DOUBLE_EQ(stats.p80, 5);
  EXPECT_EQ(stats.n, 6);
  EXPECT_EQ(summarise({}).n, 0);
}

TEST(Statistics, FailedLaunchesAreNotPlausible) {
  EXPECT_TRUE(plausible({1, 2}));
  for (const std::vector<double>& samples : std::vector<std::vector<double>>{
           {}, {0, 1}, {1, -1}, {1, std::numeric_limits<double>::infinity()}, {std::nan(""), 1}})
    EXPECT_FALSE(plausible(samples));
}

TEST(Statistics, NoiseWidensTheTieMargin) {
  EXPECT_DOUBLE_EQ(tie_margin({10, 10, 10, 9}), kTieMargin);
  const double noisy = tie_margin({10, 9.5, 10.5, 9});
  EXPECT_GT(noisy, kTieMargin);
  EXPECT_LE(tie_margin({10, 1, 20, 3}), 0.05);
}

TEST(Points, TheFastestWinsBeyondTheMargin) {
  const PointResult point = evaluate(evidence_of({timed({config(3)}, 10), timed({config(4)}, 9), timed({config(5)}, 9.06)}));
  ASSERT_EQ(point.options.size(), 3u);
  EXPECT_EQ(point.options[0].choice.config, config(4));
  EXPECT_EQ(point.options[1].choice.config, config(5));
  EXPECT_TRUE(point.ties.empty());
}

TEST(Points, TiesAreBrokenInAFixedOrder) {
  const Choice split{config(2), 4, Reduction::ticket}, plain3{config(3)}, plain4{config(4)};
  const std::vector<std::vector<Trial>> orders = {{timed(split, 9.98), timed(plain4, 10), timed(plain3, 10.02)},
                                                  {timed(plain3, 9.98), timed(split, 10), timed(plain4, 10.02)},
                                                  {timed(plain4, 9.98), timed(plain3, 10), timed(split, 10.02)}};
  for (const auto& trials : orders) {
    const PointResult point = evaluate(evidence_of(trials));
    EXPECT_EQ(point.options[0].choice, plain3);
    EXPECT_EQ(point.ties, (std::vector<std::string>{to_string(plain4), to_string(split)}));
  }
}

TEST(Statistics, SamplesThatDoNotAgreeAreTakenAgain) {
  using Samples = std::vector<double>;
  EXPECT_FALSE(disturbed({10, 10.5, 10.9}));
  EXPECT_FALSE(disturbed({10, 10.1, 900})) << "the median is right";
  EXPECT_TRUE(disturbed({34, 758, 1072}));
  EXPECT_TRUE(disturbed({10, 13}));
  EXPECT_FALSE(disturbed({}));
  EXPECT_FALSE(disturbed({0, 5, 9})) << "not a time, which no repetition mends";

  const auto measured = [](const std::vector<Samples>& turns, size_t& calls) {
    return undisturbed([&] { return turns[calls++]; });
  };
  size_t calls = 0;
  EXPECT_EQ(measured({{10, 10, 10}}, calls), (Samples{10, 10, 10}));
  EXPECT_EQ(calls, 1u);
  calls = 0;
  EXPECT_EQ(measured({{34, 758, 1072}, {33, 34, 34}}, calls), (Samples{33, 34, 34}));
  EXPECT_EQ(calls, 2u);
  calls = 0;
  EXPECT_EQ(measured({{1, 3, 3}, {1, 2, 2}, {1, 4, 4}}, calls), (Samples{1, 2, 2})) << "a kernel that is never steady";
  EXPECT_EQ(calls, 3u);
}

TEST(Points, WrongOrImplausibleTrialsAreOut) {
  Trial wrong = timed({config(3)}, 1), zero = timed({config(4)}, 0), infinite = timed({config(5)}, 1);
  wrong.outcome.invalidity = Invalidity::correctness;
  infinite.outcome.times_us = {std::numeric_limits<double>::infinity()};
  const PointResult point = evaluate(evidence_of({wrong, zero, infinite, timed({config(6)}, 50)}));
  ASSERT_EQ(point.options.size(), 1u);
  EXPECT_EQ(point.options[0].choice.config, config(6));
}

TEST(Points, AFailureInALaterStageCountsMore) {
  Trial failed = timed({config(3)}, 1, Stage::finals);
  failed.outcome.invalidity = Invalidity::timeout;
  failed.outcome.times_us.clear();
  EXPECT_TRUE(evaluate(evidence_of({timed({config(3)}, 1, Stage::screen), failed})).options.empty());
}

TEST(Points, FinalistsComeBeforeQuickTimes) {
  const PointResult point =
      evaluate(evidence_of({timed({config(3)}, 5, Stage::screen), timed({config(4)}, 10, Stage::finals)}));
  EXPECT_EQ(point.options[0].choice.config, config(4));
}

PointResult point(int64_t m, const std::vector<std::pair<int, double>>& stages_and_times) {
  std::vector<Trial> trials;
  trials.reserve(stages_and_times.size());
  for (const auto& [stages, us] : stages_and_times) trials.push_back(timed({config(stages)}, us));
  return evaluate(evidence_of(std::move(trials), m));
}

TEST(Portfolio, WinnersStayWhileThereIsRoom) {
  const std::vector<PointResult> points = {point(1, {{2, 10}, {3, 15}}), point(2, {{3, 10}, {2, 15}}), point(3, {{4, 10}})};
  EXPECT_EQ(select_portfolio(points, 64), (std::set<std::string>{id(2), id(3), id(4)}));
}

TEST(Portfolio, AGoodAllRounderIsPickedFirst) {
  const std::vector<PointResult> points = {point(1, {{2, 10}, {5, 10.5}}), point(2, {{3, 10}, {5, 10.5}}),
                                           point(3, {{4, 10}, {5, 10.5}})};
  EXPECT_EQ(select_portfolio(points, 1), (std::set<std::string>{id(5)}));
  const PointOption* option = served_by(points[0], {id(5)});
  ASSERT_NE(option, nullptr);
  EXPECT_DOUBLE_EQ(option->time_us.median, 10.5);
  EXPECT_EQ(served_by(points[0], {id(6)}), nullptr);
}

TEST(Portfolio, AnAllRounderGoesOnceBetterKernelsMakeItNeedless) {
  const std::vector<PointResult> points = {point(1, {{2, 10}, {5, 10.5}}), point(2, {{3, 10}, {5, 10.5}})};
  EXPECT_EQ(select_portfolio(points, 1), (std::set<std::string>{id(5)}));
  EXPECT_EQ(select_portfolio(points, 2), (std::set<std::string>{id(2), id(3)}));
}

TEST(Portfolio, NeverMoreThanTheLimit) {
  std::vector<PointResult> points;
  for (int i = 2; i <= 8; ++i) points.push_back(point(i, {{i, 10}}));
  EXPECT_EQ(select_portfolio(points, 5).size(), 5u);
  EXPECT_TRUE(select_portfolio({}, 5).empty());
}

// Kernel 5 wins no point, but what lies between them.
TEST(Portfolio, ASurveyCountsAsMuchAsThePoints) {
  const std::vector<PointResult> points = {point(1, {{2, 10}, {5, 10.5}}), point(2, {{3, 10}, {5, 10.6}})};
  const std::vector<PointResult> survey = {point(3, {{5, 10}, {2, 14}}), point(4, {{5, 10}, {3, 14}})};
  EXPECT_EQ(select_portfolio(points, 2), (std::set<std::string>{id(2), id(3)}));
  const std::set<std::string> pool = portfolio_pool(points, survey, 2);
  EXPECT_EQ(pool, (std::set<std::string>{id(2), id(3), id(5)}));
  EXPECT_EQ(select_portfolio(points, survey, pool, 2), (std::set<std::string>{id(3), id(5)}));
  EXPECT_EQ(select_portfolio(points, survey, {id(2), id(3)}, 2), (std::set<std::string>{id(2), id(3)}));
  EXPECT_EQ(portfolio_pool(points, {}, 2), select_portfolio(points, 2)) << "as in a first run";
}

TEST(TableBuilder, KernelsThatServeNoPointAreKnownFromTheSurvey) {
  const std::vector<PointResult> points = {point(1, {{2, 10}})}, survey = {point(3, {{5, 10}, {6, 11}})};
  const Table table = make_table({}, {}, "", points, {id(2), id(5)}, survey);
  ASSERT_EQ(table.portfolio.size(), 2u);
  EXPECT_TRUE(table.find_kernel(id(2)) != nullptr && table.find_kernel(id(5)) != nullptr);
}

TEST(TableBuilder, UsesCublasWhereItIsFasterBeyondTheMargin) {
  PointResult slower = point(1, {{2, 10}}), level = point(2, {{2, 10}}), alone = point(3, {}), nothing = point(4, {});
  slower.cublas_us = 9;
  level.cublas_us = 9.97;
  alone.cublas_us = 7;
  const Table table = make_table({}, {}, "gemm-tune", {slower, level, alone, nothing}, {id(2)});
  ASSERT_EQ(table.points.size(), 3u);
  EXPECT_TRUE(table.points[0].use_cublas);
  EXPECT_EQ(table.points[0].kernel, id(2));
  EXPECT_FALSE(table.points[1].use_cublas);
  EXPECT_TRUE(table.points[2].use_cublas);
  EXPECT_EQ(table.points[2].kernel, "");
  ASSERT_EQ(table.portfolio.size(), 1u);
}

TEST(TableBuilder, OlderPointsStayUnlessTunedAgain) {
  const Table older = make_table({}, {}, "", {point(1, {{2, 10}}), point(2, {{3, 20}})}, {id(2), id(3)});
  const std::vector<PointResult> all = with_older_points({point(2, {{4, 5}})}, older);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].options[0].choice.config, config(4));
  EXPECT_EQ(all[1].problem.m, 1);
  EXPECT_EQ(all[1].options[0].choice.config, config(2));
  EXPECT_DOUBLE_EQ(all[1].options[0].time_us.median, 10);
}

}  // namespace
}  // namespace gemm
