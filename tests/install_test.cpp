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
  EXPECT_EQ(functions, 22);
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

// The Debian package of the library, unpacked without installing it.
TEST_F(Install, DebianPackageHasTheRightFilesAndNeedsNoCuda) {
  if (run_command("dpkg-deb --version").exit_code != 0) GTEST_SKIP() << "dpkg is not installed";
  const std::string folder = folder_->file("deb");
  const CommandResult packed = run_command("mkdir '" + folder + "' && cd '" + folder + "' && cpack -G DEB --config '" +
                                           kBuild + "/CPackConfig.cmake' -D CPACK_COMPONENTS_ALL=dispatch -B . && " +
                                           "dpkg -x gemm_0.1.0_*.deb root && dpkg-deb -f gemm_0.1.0_*.deb && " +
                                           "dpkg-deb --ctrl-tarfile gemm_0.1.0_*.deb | tar -t");
  ASSERT_EQ(packed.exit_code, 0) << packed.output;
  for (const char* line : {"Package: gemm\n", "Maintainer: the gemm project\n", "Conflicts: libdispatch0, libdispatch-dev\n",
                           "libstdc++6", "libc6", "postinst"})
    EXPECT_NE(packed.output.find(line), std::string::npos) << line << " is not in\n" << packed.output;
  const size_t depends = packed.output.find("\nDepends: ");
  ASSERT_NE(depends, std::string::npos) << packed.output;
  const std::string needed = packed.output.substr(depends, packed.output.find('\n', depends + 1) - depends);
  for (const char* name : {"cuda", "cublas", "nvrtc", "nvidia"}) EXPECT_EQ(needed.find(name), std::string::npos) << needed;
  for (const char* file : {"include/gemm/gemm.h", "lib/libdispatch.so", "lib/libdispatch.so.0", "lib/libdispatch.so.0.1.0",
                           "lib/libdispatch_cublas.so", "lib/cmake/gemm/gemmConfig.cmake", "lib/pkgconfig/gemm.pc",
                           "share/gemm/configs/nvidia-h200.json"})
    EXPECT_TRUE(std::filesystem::exists(folder + "/root/usr/" + file)) << file;
}

// Another name for the file, as the generated files have it; building it all again would take too long.
TEST_F(Install, LibraryAndDropinCanBeRenamed) {
  const std::string build = folder_->file("renamed");
  const auto configured = [&](const std::string& name) {
    return run_command("cmake -S '" GEMM_SOURCE_DIR "' -B '" + build +
                       "' -DCMAKE_BUILD_TYPE=Release -DGEMM_BUILD_TOOLS=OFF " +
                       "-DGEMM_BUILD_TESTS=OFF -DGEMM_BUILD_EXAMPLES=OFF '-DGEMM_LIBRARY_NAME=" + name + "'");
  };
  EXPECT_NE(configured("a/b").exit_code, 0);
  const CommandResult result = configured("gemmdispatch");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto matches = [&](const std::string& what, const std::string& where) {
    return run_command("cd '" + build + "' && grep -r -- '" + what + "' " + where).exit_code == 0;
  };
  EXPECT_TRUE(matches("^Libs: .*-lgemmdispatch$", "gemm.pc"));
  EXPECT_TRUE(matches("add_library(gemm::dispatch SHARED", "CMakeFiles/Export"));
  EXPECT_TRUE(matches("IMPORTED_LOCATION_RELEASE.*/libgemmdispatch.so.0.1.0", "CMakeFiles/Export"));
  EXPECT_TRUE(matches("IMPORTED_SONAME_RELEASE.*\"libgemmdispatch.so.0\"", "CMakeFiles/Export"));
  EXPECT_TRUE(matches("/libgemmdispatch_cublas.so\"", "cmake_install.cmake")) << "the drop-in follows";
  EXPECT_FALSE(matches("libdispatch", "cmake_install.cmake")) << "a file keeps the name of Apple's";
  EXPECT_FALSE(matches("PACKAGE_CONFLICTS", "CPackConfig.cmake")) << "only the usual name is Apple's too";
}

}  // namespace
}  // namespace gemm::test
