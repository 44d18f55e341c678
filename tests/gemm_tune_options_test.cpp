// What gemm-tune says about itself, and about arguments and files that it cannot use.
#include "gemm_tune_fixture.h"

namespace gemm::test {
namespace {

TEST_F(GemmTune, BadInputEndsWithAClearMessage) {
  write("bad.csv", "m,n,k,transa,transb\n1,2,x,N,N\n");
  write("bad_space.json", R"({"extra": [{"BM": 7}]})");
  write("empty_space.json", unusable_space());
  const struct {
    std::vector<std::string> arguments;
    int status;
    const char* expected;
  } cases[] = {
      {{"--no-such-option"}, 2, "no-such-option"},
      {{"--gpu", "zero"}, 2, "gpu"},
      {{"--gpu", "-1"}, 2, "gpu"},
      {{"--gpu", "1024"}, 2, "gpu"},
      {{"--budget", "0"}, 2, "budget"},
      {{"--budget", "nan"}, 2, "0.01 to 10080"},
      {{"--budget", "1e10"}, 2, "0.01 to 10080"},
      {{"--timeout", "nan"}, 2, "0.001 to 86400"},
      {{"--timeout", "inf"}, 2, "0.001 to 86400"},
      {{"--timeout", "1e10"}, 2, "0.001 to 86400"},
      {{"--list", "--dry-run"}, 2, "excludes"},
      {{"--gpu", "0", "--emulated"}, 2, "excludes"},
      {{"--emulated", "--shapes", file("bad.csv")}, 2, "line 2"},
      {{"--emulated", "--shapes", file("missing.csv")}, 2, "missing.csv"},
      {{"--emulated", "--no-default-shapes"}, 2, "no shapes to tune"},
      {{"--emulated", "--space", file("missing.json")}, 2, "missing.json"},
      {{"--emulated", "--space", file("bad_space.json")}, 2, "is missing"},
      {{"--emulated", "--space", file("empty_space.json"), "--dry-run"},
       1,
       "every configuration of the search space is out"},
      {{"--emulated", "--space", file("empty_space.json")}, 1, "every configuration of the search space is out"},
      {{"--emulated", "-o", file("no/such/folder/t.json")}, 1, "cannot write the trial log"},
      {{"--gpu", "99", "--space", file("space.json"), "-o", table_}, 1, "--emulated"},
  };
  for (const auto& c : cases) {
    const Ended ended = run(c.arguments);
    EXPECT_EQ(ended.status, c.status) << ended.output;
    EXPECT_NE(ended.output.find(c.expected), std::string::npos) << ended.output;
  }
  EXPECT_FALSE(fs::exists(table_));
}

TEST_F(GemmTune, ExplainsItselfWithoutAGpu) {
  EXPECT_EQ(run({"--version"}).status, 0);
  const Ended help = run({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.output.find("Examples:"), std::string::npos);
  EXPECT_NE(help.output.find("FLOAT in [0.001 to 86400]"), std::string::npos) << help.output;
  EXPECT_EQ(help.output.find("00000000"), std::string::npos) << help.output;

  const Ended list = run({"--list", "--emulated"});
  EXPECT_EQ(list.status, 0);
  for (const KernelConfig& config : emulated_configs())
    EXPECT_NE(list.output.find(config_id(config) + "  ok"), std::string::npos);
  write("empty_space.json", unusable_space());
  EXPECT_NE(run({"--list", "--space", file("empty_space.json")}).output.find("not a multiple of the warp tile"),
            std::string::npos);

  const std::string space = GEMM_SOURCE_DIR "/configs/space.json";
  const Ended plan = run({"--dry-run", "--space", space, "--no-default-shapes", "--shapes", file("two.csv")});
  EXPECT_EQ(plan.status, 0) << plan.output;
  EXPECT_NE(plan.output.find("shapes          2\n"), std::string::npos) << plan.output;
  EXPECT_EQ(plan.output.find("mulated"), std::string::npos) << plan.output;
  EXPECT_FALSE(fs::exists(table_));
}

}  // namespace
}  // namespace gemm::test
