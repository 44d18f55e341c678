// Candidates that fail, and shapes that nothing can serve.
#include "gemm_tune_fixture.h"

namespace gemm::test {
namespace {

TEST_F(GemmTune, FaultyCandidatesCostOnlyThemselves) {
  const struct {
    const char* kind;
    const char* invalidity;
  } cases[] = {{"launch_refused", "runtime"},
               {"hang", "timeout"},
               {"crash", "runtime"},
               {"writes_nan", "correctness"},
               {"skips_last_tile", "correctness"}};
  for (const auto& c : cases) {
    SetUp();
    const Ended ended = run(quick("small.csv", {"--timeout", "2"}), config_id(small()) + "=" + c.kind);
    ASSERT_EQ(ended.status, 0) << c.kind << ": " << ended.output;
    EXPECT_GE(count_lines({std::string("\"invalidity\":\"") + c.invalidity, config_id(small())}), 1u) << c.kind;
    EXPECT_EQ(count_lines({"\"invalidity\":\"correct\"", config_id(small())}), 0u) << c.kind;
    const Table found = table();
    ASSERT_EQ(found.points.size(), 1u) << c.kind;
    EXPECT_EQ(found.points[0].kernel, config_id(large())) << c.kind;
  }
}

TEST_F(GemmTune, AHangWhileKernelsAreTimedInTurnsIsNamedAndCostsNoCandidate) {
  const Ended ended = run(quick("small.csv", {"--timeout", "2"}), config_id(small()) + "=hang_in_turns");
  ASSERT_EQ(ended.status, 0) << ended.output;
  const std::string named = "worker lost on 40x24x20 NN while timing " + config_id(small()) +
                            " in turns with others: ran longer than its time limit\n";
  EXPECT_NE(ended.output.find(named), std::string::npos) << ended.output;
  EXPECT_EQ(count_lines({"\"invalidity\":\"timeout\""}), 0u);
  const Table found = table();
  ASSERT_EQ(found.points.size(), 1u);
  EXPECT_EQ(found.points[0].kernel, config_id(small())) << "each was timed alone then";
}

TEST_F(GemmTune, AKernelOfTheTableThatIsWrongOnRandomProblemsIsNamed) {
  std::vector<std::string> arguments = quick("small.csv");
  ASSERT_EQ(run(arguments).status, 0);
  arguments.back() = "3";
  const Ended ended = run(arguments, "tile_=writes_nan");
  EXPECT_NE(ended.output.find("a kernel of the table is wrong: " + table().portfolio.front().id), std::string::npos)
      << ended.output;
  EXPECT_NE(ended.output.find("no model could be fitted"), std::string::npos) << ended.output;
}

TEST_F(GemmTune, AKernelThatHangsOnARandomProblemIsNotTimedOnOthers) {
  std::vector<std::string> arguments = quick("small.csv", {"--timeout", "0.5"});
  ASSERT_EQ(run(arguments).status, 0);
  std::replace(arguments.begin(), arguments.end(), std::string("0"), std::string("5"));
  const std::string hanging = table().portfolio.front().id;
  const Ended ended = run(arguments, hanging + "=hang");
  EXPECT_NE(ended.output.find("is left out from here on: " + hanging), std::string::npos) << ended.output;
  std::set<std::string> problems;
  for (const std::string& line : log_lines()) {
    const Json json = Json::parse(line);
    if (json.value("invalidity", "") == "timeout") problems.insert(json.at("problem").dump());
  }
  EXPECT_EQ(problems.size(), 1u);
}

TEST_F(GemmTune, WhereNoKernelIsRightItSaysSo) {
  const Ended ended = run(quick("small.csv"), "tile_=writes_nan");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_NE(ended.output.find("skipped 40x24x20 NN: no kernel was right"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("1 shapes were skipped"), std::string::npos) << ended.output;
  EXPECT_TRUE(table().points.empty());
  const Ended again = run(quick("small.csv"));
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_EQ(table().points.size(), 1u) << "skipped shapes are tried again";
}

TEST_F(GemmTune, ShapesThatDoNotFitAreSkippedWithTheReason) {
  write("two.csv", "m,n,k,transa,transb\n20000,20000,20000,N,N\n18,18,40,T,N\n");
  const Ended ended = run(quick("two.csv"));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_NE(ended.output.find("skipped 20000x20000x20000 NN"), std::string::npos) << ended.output;
  EXPECT_EQ(count_lines({"half of the free memory"}), 1u);
  EXPECT_EQ(table().points.size(), 1u);
  const Ended again = run(quick("two.csv"));
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_NE(again.output.find("1 shapes were skipped"), std::string::npos) << again.output;
  EXPECT_EQ(count_lines({"half of the free memory"}), 2u);
}

TEST_F(GemmTune, WhereEveryShapeIsSkippedItFails) {
  write("two.csv",
        "m,n,k,transa,transb,batch\n2147483647,2147483647,2147483647,N,N,1\n1048576,1048576,1048576,N,N,16777216\n");
  const Ended ended = run(quick("two.csv"));
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_EQ(count_lines({"half of the free memory"}), 2u);
  EXPECT_NE(ended.output.find("2 shapes were skipped"), std::string::npos) << ended.output;
}

}  // namespace
}  // namespace gemm::test
