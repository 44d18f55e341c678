// The drop-in preloaded into another process: that it finds the real cuBLAS however the program opened it, and what it
// shows, needs and reads from the environment.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "command.h"
#include "dispatch_cases.h"
#include "dropin/call.h"
#include "dropin/settings.h"

namespace gemm::test {
namespace {

using dropin::kEntryNames;

TEST(DropinParts, ReadsTheEnvironment) {
  struct Case {
    const char* variable;
    const char* value;
    bool off, report, reduced;
  };
  for (const Case& c : {Case{"GEMM_DROPIN", "off", true, false, false},
                        {"GEMM_DROPIN", "on", false, false, false},
                        {"GEMM_DROPIN_REPORT", "1", false, true, false},
                        {"GEMM_DROPIN_REPORT", "0", false, false, false},
                        {"NVIDIA_TF32_OVERRIDE", "1", false, false, true},
                        {"NVIDIA_TF32_OVERRIDE", "0", false, false, false},
                        {"CUBLAS_EMULATE_SINGLE_PRECISION", "1", false, false, true}}) {
    setenv(c.variable, c.value, 1);
    const dropin::Settings s = dropin::read_settings();
    unsetenv(c.variable);
    EXPECT_EQ(s.off, c.off) << c.variable;
    EXPECT_EQ(s.report, c.report) << c.variable;
    EXPECT_EQ(s.reduced_math, c.reduced) << c.variable;
  }
}

class DropinPreloaded : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a program that is not sanitized cannot load a sanitized library";
#endif
  }
};

CommandResult run_preloaded(const std::string& libraries, const std::string& environment, const std::string& arguments) {
  return run_command("env LD_PRELOAD='" + libraries + "' " + environment + " " GEMM_DROPIN_HOST " " + arguments);
}

// Without a GPU everything is forwarded, each call once: what cuBLAS calls from its inside is its own affair.
constexpr const char* kForwarded =
    "statuses 0 7 0 0\ncalls cublasSgemm_v2(2,3,4) cublasSgemm_v2_64(-1,3,4) cublasGemmEx(5,6,7) cublasSgemm_v2(5,6,7) "
    "cublasLtMatmul \n";
constexpr const char* kClient = GEMM_DROPIN_CLIENT;

TEST_F(DropinPreloaded, FindsTheRealLibraryInAnyScope) {
  for (const char* scope : {"local ", "global "}) {
    const CommandResult result = run_preloaded(GEMM_DROPIN_LIBRARY, "GEMM_DROPIN_REPORT=1", std::string(scope) + kClient);
    EXPECT_EQ(result.exit_code, 0) << scope;
    EXPECT_EQ(result.output, std::string(kForwarded) +
                                 "gemm drop-in: 0 served, 4 forwarded; "
                                 "cublasSgemm_v2: 0 served, 1 forwarded (1 other context); "
                                 "cublasSgemm_v2_64: 0 served, 1 forwarded (1 unusual); "
                                 "cublasGemmEx: 0 served, 1 forwarded (1 other context); "
                                 "cublasLtMatmul: 0 served, 1 forwarded (1 unusual)\n")
        << scope;
  }
}

TEST_F(DropinPreloaded, TwoPreloadsForwardToEachOtherAndThenOn) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(GEMM_DROPIN_LIBRARY, folder.file("second.so"));
  const CommandResult result = run_preloaded(GEMM_DROPIN_LIBRARY ":" + folder.file("second.so"), "GEMM_DROPIN_REPORT=1",
                                             std::string("local ") + kClient);
  EXPECT_EQ(result.output.rfind(kForwarded, 0), 0u) << result.output;
  const size_t first = result.output.find("gemm drop-in: 0 served, 4 forwarded");
  ASSERT_NE(first, std::string::npos) << result.output;
  EXPECT_NE(result.output.find("gemm drop-in: 0 served, 4 forwarded", first + 1), std::string::npos) << result.output;
}

TEST_F(DropinPreloaded, OffForwardsAndSilenceIsTheDefault) {
  CommandResult result = run_preloaded(GEMM_DROPIN_LIBRARY, "GEMM_DROPIN=off", std::string("local ") + kClient);
  EXPECT_EQ(result.output, kForwarded);
  result = run_preloaded(GEMM_DROPIN_LIBRARY, "GEMM_DROPIN=off GEMM_DROPIN_REPORT=1", std::string("local ") + kClient);
  EXPECT_NE(result.output.find("cublasGemmEx: 0 served, 1 forwarded (1 off)"), std::string::npos) << result.output;
  // A process without cuBLAS has nothing to report.
  result = run_command("env LD_PRELOAD=" GEMM_DROPIN_LIBRARY " GEMM_DROPIN_REPORT=1 true");
  EXPECT_EQ(result.output, "");
}

// The loader takes the first file of the name and fails on it; so it looks the same on a machine that has a cuBLAS.
TEST_F(DropinPreloaded, WithoutCublasItSaysSoOnce) {
  const TemporaryFolder folder;
  for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}) std::ofstream(folder.file(name)) << "none";
  const CommandResult result = run_preloaded(GEMM_DROPIN_LIBRARY, "LD_LIBRARY_PATH='" + folder.path() + "'", "bare");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  const size_t message = result.output.find("gemm: error: the drop-in finds no libcublas to forward cublasSgemm_v2 to: ");
  ASSERT_NE(message, std::string::npos) << result.output;
  EXPECT_EQ(result.output.find("gemm: error", message + 1), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("statuses 1 1\n"), std::string::npos) << result.output;  // CUBLAS_STATUS_NOT_INITIALIZED
}

TEST_F(DropinPreloaded, ExportsTheEntryPointsOnly) {
  const CommandResult result = run_command("nm -D --defined-only --format=posix " GEMM_DROPIN_LIBRARY);
  std::set<std::string> exported;
  std::istringstream lines(result.output);
  for (std::string name, rest; lines >> name && std::getline(lines, rest);) exported.insert(name);
  EXPECT_EQ(exported, std::set<std::string>(kEntryNames.begin(), kEntryNames.end()));
}

// The program may come with a newer C++ library than ours; and it must start on a machine without CUDA.
TEST_F(DropinPreloaded, NeedsTheCLibraryOnly) {
  const CommandResult result = run_command("readelf -d " GEMM_DROPIN_LIBRARY " | grep NEEDED");
  for (const char* name : {"stdc++", "gcc", "cuda", "cublas", "nvrtc", "nvidia"})
    EXPECT_EQ(result.output.find(name), std::string::npos) << name << " in\n" << result.output;
}

}  // namespace
}  // namespace gemm::test
