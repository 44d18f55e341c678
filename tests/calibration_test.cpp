// Random problems, the fit of the cost model, and its certificate.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "dispatch/selector.h"
#include "tuner/calibration_choices.h"
#include "tuner/calibration_problems.h"
#include "tuner/candidates.h"
#include "tuner/certificate.h"
#include "tuner/model_fit.h"
#include "tuner/table_builder.h"

namespace gemm {
namespace {

Table shipped_table() {
  std::vector<std::string> warnings;
  return load_table(GEMM_SOURCE_DIR "/configs/nvidia-h200.json", &warnings).value_or_throw();
}

std::vector<KernelConfig> configs_of(const Table& table) {
  std::vector<KernelConfig> configs;
  for (const PortfolioKernel& kernel : table.portfolio) configs.push_back(kernel.config);
  return configs;
}

TEST(CalibrationProblems, HaveEachKindInAnyBeginning) {
  const std::vector<CalibrationProblem> all = calibration_problems(1100, false), few = calibration_problems(60, false);
  size_t certificate = 0, box = 0, unaligned = 0;
  std::map<std::string, size_t> ops;
  for (size_t i = 0; i < all.size(); ++i) {
    const Problem& p = all[i].problem;
    if (i < few.size()) {
      EXPECT_EQ(p, few[i].problem) << "a longer list begins like a shorter one";
    }
    EXPECT_LE(p.flops(), 1.4e11);
    if (all[i].box) {
      EXPECT_GE(std::min({p.m, p.n, p.k}), 16) << p;
      EXPECT_LE(std::max({p.m, p.n, p.k}), 9001) << p;
      EXPECT_EQ(p.batch, 1);
    }
    certificate += all[i].certificate, box += all[i].box && all[i].certificate;
    ++ops[ops_name(p.op_a, p.op_b)];
    unaligned += p.m % 4 != 0 || p.n % 4 != 0 || p.k % 4 != 0;
  }
  EXPECT_EQ(certificate, 250u);
  EXPECT_EQ(box, 200u);
  EXPECT_EQ(ops.size(), 4u);
  for (const auto& [name, count] : ops) EXPECT_GT(count, 200u) << name;
  EXPECT_GT(unaligned, 400u);
  EXPECT_LT(unaligned, 700u);
}

// The model is judged by all kernels, and learns of them in the survey.
TEST(CalibrationProblems, AreSurveyedFirst) {
  const std::vector<CalibrationProblem> all = calibration_problems(1000, false), tiny = calibration_problems(11, true);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].survey, i < 800) << i;
  const auto later = [](const CalibrationProblem& one) { return !one.survey; };
  EXPECT_EQ(std::count_if(tiny.begin(), tiny.end(), later), 2);
  for (const CalibrationProblem& one : tiny) EXPECT_TRUE(one.survey || !one.certificate);
}

TEST(FavouriteChoices, AreThoseBetweenWhichTheSelectorDecides) {
  const Table table = shipped_table();
  const std::vector<CalibrationProblem> problems = calibration_problems(60, false);
  const auto choices = favourite_choices(problems, table);
  ASSERT_EQ(choices.size(), problems.size());
  size_t all = 0;
  for (size_t i = 0; i < problems.size(); ++i) {
    const Problem& problem = problems[i].problem;
    const Decision decision = choose(&table, problem, table.device, kWorkspaceBytes);
    for (const Candidate& candidate : decision.candidates) {
      if (candidate.rule != Rule::predicted || candidate.use_cublas) continue;
      EXPECT_NE(std::find(choices[i].begin(), choices[i].end(), candidate.choice), choices[i].end())
          << problem << ": " << to_string(candidate);
    }
    for (const Choice& choice : choices[i]) {
      EXPECT_EQ(why_illegal(choice, problem, table.device, kWorkspaceBytes), "");
      EXPECT_EQ(std::count(choices[i].begin(), choices[i].end(), choice), 1) << to_string(choice);
    }
    all += choices[i].size();
  }
  EXPECT_GT(all, 4 * problems.size());
  EXPECT_LE(all, 8 * problems.size());
}

TEST(FavouriteChoices, AreNoneWithoutAModel) {
  Table table = shipped_table();
  table.learned_model.reset();
  for (PortfolioKernel& kernel : table.portfolio) kernel.traits.clear(), kernel.model_factor.reset();
  for (const std::vector<Choice>& choices : favourite_choices(calibration_problems(20, false), table))
    EXPECT_TRUE(choices.empty());
}

TEST(SurveyChoices, MayRunAndAreFew) {
  const Table table = shipped_table();
  const std::vector<CalibrationProblem> problems = calibration_problems(60, false);
  const auto choices = survey_choices(problems, configs_of(table), table.device);
  ASSERT_EQ(choices.size(), problems.size());
  for (size_t i = 0; i < problems.size(); ++i) {
    EXPECT_FALSE(choices[i].empty()) << problems[i].problem;
    EXPECT_LE(choices[i].size(), 2 * table.portfolio.size());
    for (const Choice& choice : choices[i])
      EXPECT_EQ(why_illegal(choice, problems[i].problem, table.device, kWorkspaceBytes), "");
  }
}

// What is judged by the fastest must not overlook it; what only teaches may.
TEST(SurveyChoices, AreMoreForACertificate) {
  const Table table = shipped_table();
  std::vector<CalibrationProblem> problems = calibration_problems(60, false);
  const auto timed = [&](bool certificate) {
    for (CalibrationProblem& one : problems) one.certificate = certificate;
    size_t count = 0;
    for (const auto& choices : survey_choices(problems, configs_of(table), table.device)) count += choices.size();
    return count;
  };
  const size_t of_fit = timed(false), of_certificate = timed(true);
  EXPECT_LT(of_fit, of_certificate);
  EXPECT_GT(2 * of_fit, of_certificate);
}

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

// A problem less must not cost the kernels that are new in the portfolio their traits.
TEST_F(ModelFit, IsReplacedByOneOfNearlyAsManyProblems) {
  fit_model(table_, {fit_.begin(), fit_.begin() + 12});
  struct Case {
    int problems;
    bool keeps_older;
  };
  for (const Case& one : {Case{12, false}, Case{11, false}, Case{10, true}, Case{0, true}}) {
    Table fresh = table_;
    fresh.learned_model->problems = one.problems;
    EXPECT_EQ(keep_older_calibration(fresh, table_), one.keeps_older) << one.problems;
    EXPECT_EQ(fresh.learned_model->problems, one.keeps_older ? 12 : one.problems);
  }
}

// Stream-k needs workspace; the same kernels serve without.
TEST(Selector, PersistentKernelsServeLargeProductsWithoutWorkspace) {
  const Table table = shipped_table();
  const Decision decision = choose(&table, packed_problem(3000, 3000, 3000), table.device, 0);
  EXPECT_TRUE(std::any_of(decision.candidates.begin(), decision.candidates.end(), [](const Candidate& c) {
    return c.rule == Rule::predicted && is_specialized(c.choice.config.load) && c.choice.reduction == Reduction::ticket;
  }));
}

// Not a benchmark: it prints the time, and fails where a choice has become slow by an order of magnitude.
TEST(Selector, ChoosesForAnUntunedProblemWithinMicroseconds) {
  const Table table = shipped_table();
  const std::vector<CalibrationProblem> problems = calibration_problems(250, false);
  const Selector selector(&table, table.device);
  double best_us = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (const CalibrationProblem& one : problems)
      ASSERT_GE(selector.choose(one.problem, kWorkspaceBytes).candidates.size(), 3u);
    const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - start;
    best_us = std::min(best_us, elapsed.count() / static_cast<double>(problems.size()));
  }
  std::printf("choosing takes %.1f us for %zu kernels\n", best_us, table.portfolio.size());
  EXPECT_LT(best_us, 300);
}

}  // namespace
}  // namespace gemm
