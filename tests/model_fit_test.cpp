// The fit of the learned model to random problems and tuned points, and its certificate.
#include <gtest/gtest.h>

#include <algorithm>

#include "dispatch/selector.h"
#include "kernels/kernel_spec.h"
#include "shipped_table.h"
#include "tuner/calibration_choices.h"
#include "tuner/calibration_problems.h"
#include "tuner/certificate.h"
#include "tuner/model_fit.h"
#include "tuner/table_builder.h"

namespace gemm {
namespace {

using test::configs_of;
using test::shipped_table;

// A device on which the model is wrong in known ways: by kernel, and by the kernel with one op pair.
double true_us(const Table& table, size_t kernel, const Choice& choice, const Problem& problem) {
  const CostProblem seen(relaid_problem(choice.relayout, problem));
  const KernelCost cost(choice.config, table.device);
  const ProductCost product(cost, seen);
  CostTerms terms = product.terms(choice.split_k, choice.reduction);
  terms.compute *= 0.8 + 0.1 * static_cast<double>(kernel % 7);
  terms.fixed *= kernel % 3 == 0 ? 1.3 : 0.9;
  if (kernel % 2 == 0 && seen.ops == 3) terms.compute *= 2;
  return terms.us() + relayout_us(table.device, choice.relayout, problem);
}

PointResult measured(const Table& table, const Problem& problem, const std::vector<Choice>& choices,
                     Stage stage = Stage::calibration) {
  PointResult result;
  result.problem = problem;
  for (const Choice& choice : choices) {
    const size_t kernel = static_cast<size_t>(std::find_if(table.portfolio.begin(), table.portfolio.end(),
                                                           [&](const auto& k) { return k.config == choice.config; }) -
                                              table.portfolio.begin());
    const double us = true_us(table, kernel, choice, problem);
    result.options.push_back({choice, stage, {us, us, us, 3}});
  }
  result.cublas_us = 2.2 + 3 * problem.flops() / 66.9e6;
  return result;
}

// The same, where only `choices` were timed side by side.
PointResult after_contest(PointResult result, const std::vector<Choice>& choices) {
  for (PointOption& option : result.options)
    if (std::find(choices.begin(), choices.end(), option.choice) != choices.end()) option.stage = Stage::certificate;
  return result;
}

class ModelFit : public testing::Test {
 protected:
  // A tenth of the portfolio, to be quick.
  void SetUp() override {
    table_ = shipped_table();
    std::vector<PortfolioKernel> few;
    for (size_t i = 0; i < table_.portfolio.size(); i += 5) few.push_back(table_.portfolio[i]);
    table_.portfolio = few;
    const std::vector<CalibrationProblem> problems = calibration_problems(220, false);
    const auto choices = survey_choices(problems, configs_of(table_), table_.device);
    for (size_t i = 0; i < problems.size(); ++i) {
      const Stage stage = problems[i].certificate ? Stage::certificate : Stage::calibration;
      PointResult result = measured(table_, problems[i].problem, choices[i], stage);
      if (problems[i].certificate)
        certificate_.push_back({std::move(result), problems[i].box});
      else
        fit_.push_back(std::move(result));
    }
  }

  Table table_;
  std::vector<PointResult> fit_;
  std::vector<CertificateCase> certificate_;
};

TEST_F(ModelFit, MakesChoicesNearlyAsGoodAsTheBest) {
  for (PortfolioKernel& kernel : table_.portfolio) kernel.model_factor = 1, kernel.traits.clear();
  table_.learned_model.reset();
  const std::optional<CertificateGroup> before = make_certificate(table_, certificate_).box;
  fit_model(table_, fit_);
  const std::optional<CertificateGroup> after = make_certificate(table_, certificate_).box;
  ASSERT_TRUE(before && after);
  EXPECT_LT(before->of_best, 0.98);
  EXPECT_GT(after->of_best, 0.99);
  EXPECT_GT(after->of_best_p5, 0.95);
  EXPECT_GE(after->of_best_p5, after->worst);
  EXPECT_GT(after->problems, 50);
  for (const PortfolioKernel& kernel : table_.portfolio) {
    EXPECT_TRUE(!kernel.traits.empty() || kernel.config.family == Family::batch)
        << "few problems are for batches: " << kernel.id;
  }
  ASSERT_TRUE(table_.learned_model);
  EXPECT_GT(table_.learned_model->problems, 0.9 * static_cast<double>(fit_.size()));
  for (const TimeNetwork& network : table_.learned_model->networks) EXPECT_TRUE(network.cublas);
}

// The choice meets the fastest others, whatever the stage at which those were timed; and it does so once.
TEST_F(ModelFit, ContestsAreHeldOnceForEachChoice) {
  fit_model(table_, fit_);
  std::vector<CertificateCase> cases(certificate_.begin(), certificate_.begin() + 20);
  for (CertificateCase& one : cases)
    for (PointOption& option : one.measured.options) option.stage = Stage::calibration;
  EXPECT_FALSE(make_certificate(table_, cases).box) << "short times are not compared";
  const std::vector<Contest> contests = open_contests(table_, cases);
  ASSERT_EQ(contests.size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    const PointResult& measured = cases[i].measured;
    const Candidate chosen = choose(&table_, contests[i].problem, table_.device, kWorkspaceBytes).candidates.front();
    const auto fastest = std::min_element(measured.options.begin(), measured.options.end(),
                                          [](const auto& a, const auto& b) { return a.time_us.median < b.time_us.median; });
    const std::vector<Choice>& choices = contests[i].choices;
    EXPECT_EQ(contests[i].problem, measured.problem);
    EXPECT_NE(std::find(choices.begin(), choices.end(), fastest->choice), choices.end());
    if (!chosen.use_cublas) {
      EXPECT_EQ(choices.front(), chosen.choice);
    }
    for (const Choice& choice : choices) EXPECT_EQ(std::count(choices.begin(), choices.end(), choice), 1);
    cases[i].measured = after_contest(measured, choices);
  }
  EXPECT_TRUE(open_contests(table_, cases).empty());
  const Certificate certificate = make_certificate(table_, cases);
  EXPECT_EQ((certificate.box ? certificate.box->problems : 0) + (certificate.outside ? certificate.outside->problems : 0),
            20);
}

// The fastest short time may be one that noise has favoured; what counts is the contest.
TEST_F(ModelFit, CertificateComparesTheContestAlone) {
  fit_model(table_, fit_);
  std::vector<CertificateCase> cases = certificate_;
  const double before = make_certificate(table_, cases).box->of_best;
  for (CertificateCase& one : cases) {
    PointOption lucky = one.measured.options.front();
    lucky.choice.split_k = 63;
    lucky.stage = Stage::calibration;
    lucky.time_us.median /= 10;
    one.measured.options.push_back(lucky);
  }
  EXPECT_EQ(make_certificate(table_, cases).box->of_best, before);
}

TEST_F(ModelFit, CurveRisesToTheWholePortfolio) {
  const std::vector<double> curve = portfolio_curve(table_, fit_, certificate_);
  ASSERT_EQ(curve.size(), table_.portfolio.size());
  EXPECT_TRUE(std::is_sorted(curve.begin(), curve.end()));
  EXPECT_LT(curve.front(), 0.9);
  EXPECT_DOUBLE_EQ(curve.back(), 1);
}

// Where a kernel is far ahead, no other is worth timing.
TEST_F(ModelFit, KernelsThatWereTimedAloneAreInIt) {
  PointResult alone = fit_.back();
  alone.options.resize(1);
  const Choice choice = alone.options.front().choice;
  std::vector<PointResult> measured(fit_.begin(), fit_.begin() + 12);
  for (PointResult& result : measured)
    std::erase_if(result.options, [&](const PointOption& option) { return option.choice.config == choice.config; });
  fit_model(table_, measured);
  EXPECT_TRUE(table_.find_kernel(config_id(choice.config))->traits.empty()) << "it was not timed at all";
  measured.push_back(alone);
  fit_model(table_, measured);
  EXPECT_FALSE(table_.find_kernel(config_id(choice.config))->traits.empty());
}

TEST_F(ModelFit, IsTheSameForTheSameMeasurements) {
  const std::vector<PointResult> few(fit_.begin(), fit_.begin() + 12);
  fit_model(table_, few);
  const std::string once = to_json(table_);
  fit_model(table_, few);
  EXPECT_EQ(to_json(table_), once);
}

// Little is said where little was measured.
TEST_F(ModelFit, OneMeasuredProblemChangesOthersLittle) {
  for (PortfolioKernel& kernel : table_.portfolio) kernel.model_factor = 1, kernel.traits.clear();
  table_.learned_model.reset();
  const Problem other = packed_problem(1001, 999, 777);
  const double before_us = choose(&table_, other, table_.device, kWorkspaceBytes).candidates.front().predicted_us;
  fit_model(table_, {fit_.begin(), fit_.begin() + 1});
  const double after_us = choose(&table_, other, table_.device, kWorkspaceBytes).candidates.front().predicted_us;
  EXPECT_GT(after_us, 0.5 * before_us);
  EXPECT_LT(after_us, 2 * before_us);
}

// Where the kernel that random problems speak for was slow on tuned ones, it is not chosen between those.
TEST_F(ModelFit, LearnsFromPointsToo) {
  table_.points.clear();
  const Problem between = packed_problem(900, 900, 900);
  const auto chosen = [&] {
    return choose(&table_, between, table_.device, kWorkspaceBytes).candidates.front().choice.config;
  };
  const CalibrationResults random{fit_, {}, {}};
  fit_table(table_, random, {});
  const int problems = table_.learned_model->problems;
  const KernelConfig favourite = chosen();

  std::vector<CalibrationProblem> tuned;
  for (int64_t size = 400; size <= 1600; size += 64) tuned.push_back({packed_problem(size, size, size)});
  const auto choices = survey_choices(tuned, configs_of(table_), table_.device);
  std::vector<PointResult> points;
  for (size_t i = 0; i < tuned.size(); ++i) {
    points.push_back(measured(table_, tuned[i].problem, choices[i], Stage::screen));
    for (PointOption& option : points.back().options)
      if (option.choice.config == favourite) option.time_us.median *= 3;
  }
  fit_table(table_, random, points);
  EXPECT_EQ(table_.learned_model->problems, problems) << "random ones only";
  EXPECT_NE(chosen(), favourite);

  CalibrationResults wrong_on_random = random;
  for (PointResult& result : wrong_on_random.survey)
    std::erase_if(result.options, [&](const PointOption& option) { return option.choice.config == favourite; });
  fit_table(table_, wrong_on_random, points);
  for (const PortfolioKernel& kernel : table_.portfolio)
    EXPECT_EQ(kernel.traits.empty(), kernel.config == favourite) << kernel.id << " was right on tuned points alone";
  EXPECT_NE(chosen(), favourite);

  fit_table(table_, {{PointResult{between, {}, {}, 30.0, {}}}, {}, {}}, points);
  EXPECT_FALSE(table_.learned_model) << "points alone are no calibration, nor is a problem on which no kernel was right";
}

TEST_F(ModelFit, IsKeptWhereANewTableKnowsLess) {
  fit_model(table_, {fit_.begin(), fit_.begin() + 12});
  table_.certificate = make_certificate(table_, certificate_);
  Table fresh = table_;
  fresh.portfolio.erase(fresh.portfolio.begin());
  for (PortfolioKernel& kernel : fresh.portfolio) kernel.traits.clear();
  fresh.learned_model.reset(), fresh.certificate.reset();
  Table same = table_;
  same.learned_model.reset(), same.certificate.reset();

  keep_older_calibration(fresh, table_);
  ASSERT_TRUE(fresh.learned_model);
  EXPECT_EQ(fresh.learned_model->problems, 12);
  for (size_t i = 0; i < fresh.portfolio.size(); ++i) EXPECT_EQ(fresh.portfolio[i].traits, table_.portfolio[i + 1].traits);
  EXPECT_FALSE(fresh.certificate) << "it spoke of another portfolio";
  keep_older_calibration(same, table_);
  EXPECT_TRUE(same.certificate);
  Table knows_as_much = table_;
  knows_as_much.learned_model->networks.pop_back();
  keep_older_calibration(knows_as_much, table_);
  EXPECT_NE(knows_as_much.learned_model->networks.size(), table_.learned_model->networks.size()) << "the new one stays";
}

// However few its problems, a model that can predict is better than one of other kernels.
TEST_F(ModelFit, IsReplacedWhereItKnowsOtherKernels) {
  fit_model(table_, {fit_.begin(), fit_.begin() + 12});
  const size_t kernels = table_.portfolio.size();
  for (const size_t known : {kernels, kernels / 2, kernels / 2 - 1, size_t{0}}) {
    Table older = table_, fresh = table_;
    fresh.learned_model->problems = 3;
    older.portfolio.resize(known);
    EXPECT_EQ(keep_older_calibration(fresh, older), 2 * known >= kernels) << known << " of " << kernels;
    Table without = table_;
    without.learned_model.reset();
    EXPECT_TRUE(keep_older_calibration(without, older)) << "there is no other";
  }
}

// Some problems less must not cost the kernels that are new in the portfolio their traits.
TEST_F(ModelFit, IsReplacedByOneOfHalfAsManyProblems) {
  fit_model(table_, {fit_.begin(), fit_.begin() + 12});
  struct Case {
    int problems;
    bool keeps_older;
  };
  for (const Case& one : {Case{12, false}, Case{6, false}, Case{5, true}, Case{0, true}}) {
    Table fresh = table_;
    fresh.learned_model->problems = one.problems;
    EXPECT_EQ(keep_older_calibration(fresh, table_), one.keeps_older) << one.problems;
    EXPECT_EQ(fresh.learned_model->problems, one.keeps_older ? 12 : one.problems);
  }
}

}  // namespace
}  // namespace gemm
