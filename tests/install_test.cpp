// What a user gets: the installed package builds a program by CMake and by pkg-config, and libdispatch shows and needs only
// what it should.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "command.h"
#include "dispatch/table_search.h"
#include "dispatch_cases.h"

namespace gemm::test {
namespace {

const std::string kBuild = std::filesystem::path(GEMM_TOOLS_DIR).parent_path().string();

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

class Install : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    installed_ =
        run_command("cmake --install '" + kBuild + "' --component dispatch --prefix '" + folder_->file("usr") + "'");
  }
  static void TearDownTestSuite() { delete folder_; }
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "a program that is not sanitized cannot load a sanitized libdispatch";
    ASSERT_EQ(installed_.exit_code, 0) << installed_.output;
  }
  static std::string library() {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_->file("usr")))
      if (entry.path().filename() == "libdispatch.so") return entry.path();
    return "";
  }

  static TemporaryFolder* folder_;
  static CommandResult installed_;
};
TemporaryFolder* Install::folder_ = nullptr;
CommandResult Install::installed_;

// Exits 0 with a GPU and without one, as long as the library answers.
constexpr const char* kConsumer = R"(
#include <gemm/gemm.h>
#include <stdio.h>
int main(void) {
  gemm_context_t* context = NULL;
  const gemm_status_t status = gemm_create(&context, 0);
  printf("%s %s %s\n", gemm_version(), gemm_status_name(status), gemm_last_error());
  gemm_destroy(context);
  return status == GEMM_SUCCESS || status == GEMM_NO_DEVICE ? 0 : 1;
}
)";

TEST_F(Install, CMakeConsumerBuildsAndRuns) {
  std::ofstream(folder_->file("main.c")) << kConsumer;
  std::ofstream(folder_->file("CMakeLists.txt")) << "cmake_minimum_required(VERSION 3.25)\nproject(consumer C)\n"
                                                    "find_package(gemm 0.1 REQUIRED)\nadd_executable(consumer main.c)\n"
                                                    "target_link_libraries(consumer PRIVATE gemm::dispatch)\n";
  const CommandResult result = run_command("cd '" + folder_->path() + "' && cmake -S . -B build -DCMAKE_PREFIX_PATH='" +
                                           folder_->file("usr") + "' && cmake --build build && ./build/consumer");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("0.1.0 GEMM_"), std::string::npos) << result.output;
}

TEST_F(Install, PkgConfigConsumerBuildsAndRunsWhereverTheFilesWere) {
  if (run_command("pkg-config --version").exit_code != 0) GTEST_SKIP() << "pkg-config is not installed";
  std::filesystem::rename(folder_->file("usr"), folder_->file("moved"));
  std::ofstream(folder_->file("main.c")) << kConsumer;
  const CommandResult result =
      run_command("cd '" + folder_->path() + "' && export PKG_CONFIG_PATH=$(dirname $(find moved -name gemm.pc)) && " +
                  "cc -std=c99 main.c $(pkg-config --cflags --libs gemm) -o consumer && " +
                  "LD_LIBRARY_PATH=$(pkg-config --variable=libdir gemm) ./consumer");
  std::filesystem::rename(folder_->file("moved"), folder_->file("usr"));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("0.1.0 GEMM_"), std::string::npos) << result.output;
}

TEST_F(Install, LibraryExportsTheCApiOnly) {
  const CommandResult result = run_command("nm -D --defined-only --format=posix '" + library() + "'");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  std::istringstream lines(result.output);
  int functions = 0;
  for (std::string line; std::getline(lines, line); ++functions)
    EXPECT_EQ(line.rfind("gemm_", 0), 0u) << "exported: " << line;
  EXPECT_EQ(functions, 13);
}

TEST_F(Install, LibraryStartsWithoutCuda) {
  const CommandResult result = run_command("readelf -d '" + library() + "' | grep NEEDED");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  for (const char* name : {"cuda", "cublas", "nvrtc", "nvidia"})
    EXPECT_EQ(result.output.find(name), std::string::npos) << name << " in\n" << result.output;
}

TEST_F(Install, DropinLiesBesideTheLibrary) {
  EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(library()).parent_path() / "libdispatch_cublas.so"));
}

TEST_F(Install, ConfigsAreWhereTheLibraryLooks) {
  const std::filesystem::path configs = std::filesystem::path(folder_->file("usr")) / "share/gemm/configs";
  EXPECT_TRUE(std::filesystem::exists(configs / "table.schema.json"));
  ASSERT_FALSE(config_folders().empty());
  EXPECT_TRUE(config_folders().front().ends_with("/share/gemm/configs")) << config_folders().front();
  EXPECT_EQ(std::filesystem::weakly_canonical(std::filesystem::path(library()).parent_path() / "../share/gemm/configs"),
            std::filesystem::canonical(configs));
}

}  // namespace
}  // namespace gemm::test
