// ./dev: its commands, and what it says where packages are missing.
#include <gtest/gtest.h>

#include <filesystem>

#include "command.h"
#include "dispatch_cases.h"

namespace gemm {
namespace {

const std::string kDev = std::string("bash '") + GEMM_SOURCE_DIR + "/dev' ";

TEST(DevScript, HelpAndUsage) {
  struct Case {
    const char* arguments;
    int exit_code;
    const char* message;
  };
  for (const Case& c : {Case{"help", 0, "gpu-test"},
                        {"", 0, "gpu-test"},
                        {"nonsense", 2, "unknown command 'nonsense'"},
                        {"test twice", 2, "takes no arguments"}}) {
    const test::CommandResult result = test::run_command("cd / && " + kDev + c.arguments);
    EXPECT_EQ(result.exit_code, c.exit_code) << c.arguments << "\n" << result.output;
    EXPECT_NE(result.output.find(c.message), std::string::npos) << c.arguments << "\n" << result.output;
  }
}

// On a machine that has neither a compiler nor apt-get, the command to run is printed.
TEST(DevScript, NamesMissingPackages) {
  const test::TemporaryFolder folder;
  for (const char* program : {"bash", "dirname", "nproc", "sed", "sort", "head", "id"}) {
    const test::CommandResult where = test::run_command(std::string("command -v ") + program);
    ASSERT_EQ(where.exit_code, 0) << program;
    std::filesystem::create_symlink(where.output.substr(0, where.output.find('\n')), folder.file(program));
  }
  const test::CommandResult result = test::run_command("PATH='" + folder.path() + "' " + kDev + "build");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find("sudo apt-get install g++ cmake ninja-build nlohmann-json3-dev libcli11-dev libgtest-dev"),
            std::string::npos)
      << result.output;
}

TEST(DevScript, ContinuousIntegrationRunsDevTest) {
  const test::CommandResult result = test::run_command(std::string("tail -n 1 '") + GEMM_SOURCE_DIR + "/.ci/run'");
  EXPECT_EQ(result.output, "exec ./dev test\n");
}

}  // namespace
}  // namespace gemm
