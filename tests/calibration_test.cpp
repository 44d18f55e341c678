// Random problems, and what is timed on them.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "dispatch/selector.h"
#include "shipped_table.h"
#include "tuner/calibration_choices.h"
#include "tuner/calibration_problems.h"

namespace gemm {
namespace {

using test::configs_of;
using test::shipped_table;

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
