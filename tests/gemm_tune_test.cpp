// What gemm-tune writes, and where.
#include <algorithm>

#include "gemm_tune_fixture.h"

namespace gemm::test {
namespace {

TEST_F(GemmTune, WritesATableOfModelledPoints) {
  const Ended ended = run(quick("two.csv"));
  ASSERT_EQ(ended.status, 0) << ended.output;
  const Table found = table();
  EXPECT_EQ(found.provenance, "modelled");
  ASSERT_EQ(found.points.size(), 2u);
  EXPECT_GE(found.portfolio.size(), 1u);
  for (const TablePoint& point : found.points) {
    EXPECT_FALSE(point.use_cublas);
    EXPECT_GT(point.time_us.median, 0);
    EXPECT_LE(point.max_scaled_error, 1);
    EXPECT_FALSE(point.cublas_us);
    EXPECT_NE(found.find_kernel(point.kernel), nullptr);
  }
  EXPECT_NE(ended.output.find(table_), std::string::npos) << ended.output;
}

TEST_F(GemmTune, TuningTwiceGivesTheSameTable) {
  ASSERT_EQ(run(quick("two.csv")).status, 0);
  const Table first = table();
  ASSERT_EQ(run(quick("two.csv", {"--fresh"})).status, 0);
  const Table second = table();
  ASSERT_EQ(first.points.size(), second.points.size());
  for (size_t i = 0; i < first.points.size(); ++i) {
    EXPECT_EQ(first.points[i].kernel, second.points[i].kernel);
    EXPECT_EQ(first.points[i].split_k, second.points[i].split_k);
  }
  EXPECT_TRUE(fs::exists(table_ + "l.old-1")) << "the old log is kept";
}

TEST_F(GemmTune, FitsAndJudgesTheSelectorOnRandomProblems) {
  std::vector<std::string> arguments = quick("small.csv");
  arguments.back() = "10";  // of which eight are surveyed
  const Ended ended = run(arguments);
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_NE(ended.output.find("seem fastest by then on 2 more"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("untuned problems (box)"), std::string::npos) << ended.output;
  const Table first = table();
  ASSERT_EQ(first.points.size(), 1u) << "random problems are no points";
  ASSERT_TRUE(first.certificate && first.certificate->box);
  EXPECT_GT(first.certificate->box->of_best, 0.5);
  EXPECT_LE(first.certificate->box->of_best, 1);
  EXPECT_FALSE(first.certificate->box->over_cublas) << "there is no cuBLAS here";
  ASSERT_TRUE(first.learned_model);
  EXPECT_GE(first.learned_model->problems, 1);
  EXPECT_EQ(first.portfolio_curve.size(), first.portfolio.size());
  for (const PortfolioKernel& kernel : first.portfolio)
    EXPECT_EQ(kernel.traits.size(), first.learned_model->networks.size()) << kernel.id;
  // The same again, and calibration alone, find everything in the log.
  const size_t lines = log_lines().size();
  ASSERT_EQ(run(arguments).status, 0);
  EXPECT_EQ(log_lines().size(), lines);
  const Ended alone =
      run({"--emulated", "--no-default-shapes", "-o", table_, "--space", file("space.json"), "--calibration", "10"});
  ASSERT_EQ(alone.status, 0) << alone.output;
  EXPECT_EQ(log_lines().size(), lines);
  EXPECT_EQ(table().points.size(), 1u);
  // None at all, and no log, leaves the model as it is, and says so.
  fs::remove(table_ + "l");
  arguments.back() = "0";
  const Ended fewer = run(arguments);
  ASSERT_EQ(fewer.status, 0) << fewer.output;
  EXPECT_NE(fewer.output.find("the older table's model is kept"), std::string::npos) << fewer.output;
  EXPECT_EQ(table().learned_model->problems, first.learned_model->problems);
}

TEST_F(GemmTune, ALinkToATableSharesItsLog) {
  ASSERT_EQ(run(quick("small.csv")).status, 0);
  fs::create_symlink(table_, folder_ / "link.json");
  std::vector<std::string> arguments = quick("small.csv");
  *std::find(arguments.begin(), arguments.end(), table_) = (folder_ / "link.json").string();
  const Ended ended = run(arguments);
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_NE(ended.output.find("1 of 1 shapes are done already"), std::string::npos) << ended.output;
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.json"));
  EXPECT_FALSE(fs::exists(folder_ / "link.jsonl"));
}

TEST_F(GemmTune, TablesAreUnited) {
  ASSERT_EQ(run(quick("small.csv")).status, 0);
  fs::remove(table_ + "l");
  write("small.csv", "m,n,k,transa,transb\n18,18,40,T,N\n");
  const Ended ended = run(quick("small.csv"));
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(table().points.size(), 2u);
}

TEST_F(GemmTune, NeverReplacesWhatIsNotItsTable) {
  ASSERT_EQ(run(quick("small.csv")).status, 0);
  std::string other = read(table_);
  other.replace(other.find("\"sm_count\": 132"), 15, "\"sm_count\": 84");
  for (const std::string& content : {other, std::string("not a table"), std::string()}) {
    std::ofstream(table_) << content;
    const Ended ended = run(quick("small.csv"));
    EXPECT_EQ(ended.status, 1);
    EXPECT_NE(ended.output.find("choose another name with -o"), std::string::npos) << ended.output;
    EXPECT_EQ(read(table_), content);
  }
}

TEST_F(GemmTune, PutsTheTableIntoConfigsWhereThereIsSuchAFolder) {
  const std::vector<std::string> arguments = {"--emulated", "--no-default-shapes", "--shapes", file("small.csv"),
                                              "--space",    file("space.json")};
  fs::create_directories(folder_ / "configs");
  ASSERT_EQ(run(arguments).status, 0);
  EXPECT_TRUE(fs::exists(folder_ / "configs" / (default_emulator_options().info.slug() + ".json")));
}

}  // namespace
}  // namespace gemm::test
