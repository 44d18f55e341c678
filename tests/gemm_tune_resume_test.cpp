// gemm-tune is stopped, or cannot go on: what is finished stays, and the next run goes on from there.
#include <sys/resource.h>

#include "gemm_tune_fixture.h"

namespace gemm::test {
namespace {

TEST_F(GemmTune, AFinishedRunHasNothingToDo) {
  ASSERT_EQ(run(quick("small.csv")).status, 0);
  const size_t lines = log_lines().size();
  const Ended again = run(quick("small.csv"));
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(log_lines().size(), lines);
  EXPECT_NE(again.output.find("1 of 1 shapes are done already"), std::string::npos) << again.output;
}

TEST_F(GemmTune, ADryRunKnowsWhatIsDone) {
  const auto shapes_line = [&](std::vector<std::string> more) {
    more.insert(more.begin(), "--dry-run");
    const Ended plan = run(quick("two.csv", more));
    EXPECT_EQ(plan.status, 0) << plan.output;
    const size_t from = plan.output.find("shapes  ");
    return plan.output.substr(from, plan.output.find('\n', from) - from);
  };
  EXPECT_EQ(shapes_line({}), "shapes          2");
  ASSERT_EQ(run(quick("small.csv")).status, 0);
  const std::string log = read(table_ + "l");
  EXPECT_EQ(shapes_line({}), "shapes          2, 1 of them done already");
  EXPECT_EQ(shapes_line({"--fresh"}), "shapes          2");
  // A log of another search space is no help.
  Json space;
  space["extra"] = {to_json(small())};
  write("space.json", space.dump());
  EXPECT_EQ(shapes_line({}), "shapes          2");
  EXPECT_EQ(read(table_ + "l"), log);
}

TEST_F(GemmTune, InterruptsKeepFinishedWorkAndResume) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) {
    SetUp();
    const pid_t pid = start(quick("two.csv"));
    wait_for_lines(4);
    kill(pid, signal);
    const Ended stopped = wait_for(pid);
    EXPECT_EQ(stopped.status, signal == SIGKILL ? -SIGKILL : 128 + signal) << stopped.output;
    if (signal != SIGKILL) table();  // is there and valid
    const size_t before = log_lines().size();
    EXPECT_GE(before, 4u);
    const Ended resumed = run(quick("two.csv"));
    ASSERT_EQ(resumed.status, 0) << resumed.output;
    EXPECT_GT(log_lines().size(), before);
    EXPECT_EQ(table().points.size(), 2u);
    expect_no_trial_twice();
  }
}

TEST_F(GemmTune, ASecondTunerOnTheSameTableSaysSo) {
  const pid_t first = start(quick("small.csv", {"--timeout", "60"}), "tile_=hang");
  const std::string first_output = output_;
  wait_for_lines(1);
  const Ended second = run(quick("small.csv"));
  EXPECT_EQ(second.status, 1);
  EXPECT_NE(second.output.find("another gemm-tune"), std::string::npos) << second.output;
  kill(first, SIGTERM);
  EXPECT_EQ(wait_for(first).status, 143);
}

TEST_F(GemmTune, BudgetStopsCleanly) {
  // The hanging candidates of the first shape outlast the budget.
  const Ended ended = run(quick("two.csv", {"--budget", "0.01", "--timeout", "0.1"}), "tile_=hang");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_NE(ended.output.find("2 shapes are not done yet"), std::string::npos) << ended.output;
  table();
}

TEST_F(GemmTune, AFileSizeLimitIsAnError) {
  ASSERT_EQ(run(quick("two.csv")).status, 0);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tight{fs::file_size(table_ + "l") + 300, before.rlim_max};
  write("small.csv", "m,n,k,transa,transb\n20,20,20,N,N\n");
  setrlimit(RLIMIT_FSIZE, &tight);
  const pid_t pid = start(quick("small.csv"));
  setrlimit(RLIMIT_FSIZE, &before);
  const Ended ended = wait_for(pid);
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_NE(ended.output.find("cannot write to the trial log"), std::string::npos) << ended.output;
  EXPECT_EQ(ended.output.find("has all results"), std::string::npos) << ended.output;
  EXPECT_EQ(table().points.size(), 2u);
}

}  // namespace
}  // namespace gemm::test
