#include "tuner/trial_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace gemm {
namespace {

namespace fs = std::filesystem;

const LogHeader kHeader{"some GPU", "space", "source", "1"};

Trial trial(int split, Invalidity invalidity = Invalidity::correct) {
  Trial t;
  t.timestamp = utc_timestamp();
  t.problem = packed_problem(64, 32, 16, Op::T, Op::N, 2);
  t.choice.split_k = split;
  t.choice.reduction = Reduction::kernel;
  t.stage = Stage::refine;
  t.outcome.invalidity = invalidity;
  t.outcome.reason = invalidity == Invalidity::correct ? "" : "it hung";
  t.outcome.registers = 128;
  t.outcome.max_scaled_error = 0.125;
  t.outcome.times_us = {1.5, 2.5};
  return t;
}

class Log : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("trial_log_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    path_ = (folder_ / "t.jsonl").string();
  }
  Result<TrialLog> open(const LogHeader& header = kHeader, bool fresh = false) {
    messages_.clear();
    return TrialLog::open(path_, header, fresh, &messages_);
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
  std::string path_;
  std::vector<std::string> messages_;
};

TEST_F(Log, KeepsEverything) {
  const Problem problem = trial(1).problem;
  {
    TrialLog log = open().value_or_throw();
    log.add(trial(4));
    log.add(trial(8, Invalidity::timeout));
    log.add_baselines(problem, {{3.5}, {4.5, 5.5}, "algorithm 7"});
    log.finish(problem);
  }
  TrialLog log = open().value_or_throw();
  const Evidence& evidence = log.evidence(problem);
  ASSERT_EQ(evidence.trials.size(), 2u);
  const Trial* found = evidence.find(trial(4).choice, Stage::refine);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->outcome.times_us, (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(found->outcome.registers, 128);
  EXPECT_EQ(found->outcome.max_scaled_error, 0.125);
  EXPECT_EQ(evidence.find(trial(8).choice, Stage::refine)->outcome.invalidity, Invalidity::timeout);
  EXPECT_EQ(evidence.find(trial(8).choice, Stage::refine)->outcome.reason, "it hung");
  EXPECT_EQ(evidence.find(trial(4).choice, Stage::screen), nullptr);
  EXPECT_EQ(evidence.baselines.cublaslt_best_us, (std::vector<double>{4.5, 5.5}));
  EXPECT_TRUE(evidence.finished);
}

TEST_F(Log, ASkippedProblemIsUnfinishedForTheNextRun) {
  const Problem problem = trial(1).problem;
  {
    TrialLog log = open().value_or_throw();
    log.add(trial(4));
    log.add(trial(8, Invalidity::timeout));
    log.skip(problem, "too large");
    EXPECT_EQ(log.evidence(problem).skipped, "too large");
  }
  // As logs had it before: finished, with a reason.
  std::ofstream(path_, std::ios::app)
      << R"({"problem": {"m": 9, "n": 9, "k": 9, "ops": "NN", "batch": 1}, "finished": true, "skipped": "memory"})"
      << "\n";
  TrialLog log = open().value_or_throw();
  EXPECT_EQ(log.evidence(problem).skipped, "");
  EXPECT_FALSE(log.evidence(problem).finished);
  EXPECT_FALSE(log.evidence(packed_problem(9, 9, 9)).finished);
  EXPECT_NE(log.evidence(problem).find(trial(4).choice, Stage::refine), nullptr);
  EXPECT_EQ(log.evidence(problem).find(trial(8).choice, Stage::refine), nullptr) << "what failed is tried again";
}

TEST_F(Log, ATornLineCostsOnlyThatLine) {
  open().value_or_throw().add(trial(2));
  const auto whole = fs::file_size(path_);
  open().value_or_throw().add(trial(3));
  fs::resize_file(path_, whole + 40);
  {
    TrialLog log = open().value_or_throw();
    EXPECT_EQ(log.evidence(trial(1).problem).trials.size(), 1u);
    log.add(trial(5));
  }
  TrialLog log = open().value_or_throw();
  EXPECT_NE(log.evidence(trial(1).problem).find(trial(2).choice, Stage::refine), nullptr);
  EXPECT_NE(log.evidence(trial(1).problem).find(trial(5).choice, Stage::refine), nullptr);
  EXPECT_TRUE(messages_.empty());
}

TEST_F(Log, ATornHeaderStartsAgain) {
  open().value_or_throw();
  fs::resize_file(path_, 10);
  open().value_or_throw().add(trial(2));
  EXPECT_EQ(open().value_or_throw().evidence(trial(1).problem).trials.size(), 1u);
  EXPECT_EQ(files(), 1u);
}

TEST_F(Log, AnotherHeaderSetsTheOldLogAside) {
  for (const LogHeader& other :
       {LogHeader{"another GPU", "space", "source", "1"}, LogHeader{"some GPU", "wide", "source", "1"},
        LogHeader{"some GPU", "space", "new", "1"}, LogHeader{"some GPU", "space", "source", "2"}}) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    open().value_or_throw().add(trial(2));
    TrialLog log = open(other).value_or_throw();
    EXPECT_TRUE(log.evidence().empty());
    ASSERT_EQ(messages_.size(), 1u);
    EXPECT_NE(messages_[0].find(".old-1"), std::string::npos);
    EXPECT_EQ(files(), 2u);
  }
}

TEST_F(Log, FreshKeepsTheOldOneToo) {
  open().value_or_throw().add(trial(2));
  EXPECT_TRUE(open(kHeader, true).value_or_throw().evidence().empty());
  EXPECT_TRUE(open(kHeader, true).value_or_throw().evidence().empty());
  EXPECT_EQ(files(), 3u);
}

TEST_F(Log, OnlyOneMayHoldIt) {
  const TrialLog first = open().value_or_throw();
  const Result<TrialLog> second = open();
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().find("another gemm-tune"), std::string::npos) << second.error();
}

TEST_F(Log, AnUnwritablePlaceIsSaid) {
  const auto log = TrialLog::open((folder_ / "no" / "t.jsonl").string(), kHeader, false, &messages_);
  ASSERT_FALSE(log.ok());
  EXPECT_NE(log.error().find("cannot write the trial log"), std::string::npos) << log.error();
}

TEST_F(Log, AFullDiskIsSaidAndWhatWasWrittenStays) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  {
    TrialLog log = open().value_or_throw();
    log.add(trial(2));
    const rlimit tight{fs::file_size(path_) + 10, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tight);
    EXPECT_TRUE(log.has_everything());
    EXPECT_THROW(log.add(trial(3)), Error);
    EXPECT_FALSE(log.has_everything());
    setrlimit(RLIMIT_FSIZE, &before);
  }
  EXPECT_EQ(open().value_or_throw().evidence(trial(1).problem).trials.size(), 1u);
}

}  // namespace
}  // namespace gemm
