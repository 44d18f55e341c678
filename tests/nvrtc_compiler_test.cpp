// Compiling by NVRTC: the target, the log, the cache key, and what is said where NVRTC is missing or incomplete.
#include "kernels/nvrtc_compiler.h"

#include <gtest/gtest.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "kernels/dynamic_library.h"

namespace gemm {
namespace {

namespace fs = std::filesystem;

constexpr int kFutureArch = 999;

class NvrtcCompiler : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto target = target_for(90); !target.ok()) GTEST_SKIP() << target.error();
  }
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(ChooseTarget, OwnArchitectureElseNearestOlderAsPtx) {
  const std::vector<int> known = {75, 80, 86, 90, 100, 120};
  const std::vector<std::pair<int, CompileTarget>> cases = {
      {75, {"sm_75", false}},     {90, {"sm_90a", false}},      {120, {"sm_120", false}},
      {87, {"compute_86", true}}, {103, {"compute_100", true}}, {kFutureArch, {"compute_120", true}},
  };
  for (const auto& [compute_capability, target] : cases) {
    const auto chosen = choose_target(compute_capability, known);
    ASSERT_TRUE(chosen.ok()) << compute_capability;
    EXPECT_EQ(*chosen, target) << compute_capability << " gave " << chosen->arch;
  }
  // The order in which NVRTC lists them does not matter.
  EXPECT_EQ(choose_target(95, {100, 90, 80})->arch, "compute_90");
}

TEST(ChooseTarget, RefusesWhatIsOlderThanAll) {
  const auto refused = choose_target(70, {75, 80});
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(contains(refused.error(), "sm_70"));
  EXPECT_FALSE(choose_target(90, {}).ok());
}

TEST_F(NvrtcCompiler, MakesMachineCodeForAKnownArchitecture) {
  const auto cubin = compile_kernel(scale_spec(), 90);
  ASSERT_TRUE(cubin.ok()) << cubin.error();
  EXPECT_EQ(cubin->target, (CompileTarget{"sm_90a", false}));
  EXPECT_EQ(cubin->image.substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_TRUE(contains(cubin->image, kEntryName));
  EXPECT_EQ(cubin->log, "");
}

TEST_F(NvrtcCompiler, MakesPtxForAnUnknownArchitecture) {
  const auto cubin = compile_kernel(scale_spec(), kFutureArch);
  ASSERT_TRUE(cubin.ok()) << cubin.error();
  EXPECT_TRUE(cubin->target.is_ptx);
  EXPECT_TRUE(cubin->target.arch.starts_with("compute_"));
  EXPECT_TRUE(contains(cubin->image, ".target sm_" + cubin->target.arch.substr(8))) << cubin->image.substr(0, 500);
  EXPECT_TRUE(contains(cubin->image, std::string(".entry ") + kEntryName));
}

TEST_F(NvrtcCompiler, ReturnsWarnings) {
  KernelSpec spec = scale_spec();
  spec.function = "[](const gemm::ScaleArgs&) { int never_used; }";
  const auto cubin = compile_kernel(spec, 90);
  ASSERT_TRUE(cubin.ok()) << cubin.error();
  EXPECT_TRUE(contains(cubin->log, "never_used")) << cubin->log;
}

TEST_F(NvrtcCompiler, ReportsSpilledRegisters) {
  KernelSpec spec = scale_spec();
  spec.threads = 1024;
  spec.min_blocks = 2;  // at most 32 registers
  spec.function =
      "[](const gemm::ScaleArgs& args) { float x[64]; for (int i = 0; i < 64; ++i) x[i] = args.c[i * args.n]; "
      "__syncthreads(); "
      "for (int i = 0; i < 64; ++i) args.c[i] = x[i] * x[63 - i]; }";
  const auto cubin = compile_kernel(spec, 90);
  ASSERT_TRUE(cubin.ok()) << cubin.error();
  EXPECT_TRUE(contains(cubin->log, "spill")) << cubin->log;
}

// One kernel of each family and load path that fills its registers, and what is launched beside them.
TEST_F(NvrtcCompiler, EpiloguesCompileWithoutWarningsAndSpills) {
  using enum LoadPath;
  std::vector<KernelSpec> specs = {reduce_with_spec(Epilogue::bias_relu), scale_with_spec(Epilogue::bias)};
  const auto add = [&](KernelVariant v) {
    v.epilogue = Epilogue::bias_relu;
    specs.push_back(variant_spec(v));
  };
  add({{128, 128, 16, 64, 32, 2, 4, 4, 3, 1, 1, async_transpose, FmaOrder::rows, AccInit::shifted}, Op::T, Op::N, 1, 1});
  add({{64, 64, 32, 64, 32, 1, 8, 8, 4, 2, 1, tma, FmaOrder::rows, AccInit::plain}, Op::T, Op::N, 4, 4, false, true});
  add({{256, 128, 16, 64, 64, 4, 4, 4, 5, 1, 1, warp_specialized, FmaOrder::columns, AccInit::shifted}, Op::N, Op::T});
  add({{64, 2, 64, 64, 2, 1, 8, 2, 2, 2, 1, register_staged, FmaOrder::rows, AccInit::plain, Family::stream}, Op::T});
  add({{16, 16, 16, 16, 16, 1, 4, 2, 1, 4, 1, async, FmaOrder::rows, AccInit::plain, Family::batch},
       Op::N,
       Op::N,
       4,
       4,
       false,
       false,
       true});
  for (const KernelSpec& spec : specs) {
    const auto cubin = compile_kernel(spec, 90);
    ASSERT_TRUE(cubin.ok()) << cubin.error();
    EXPECT_EQ(cubin->log, "") << spec.name;
  }
}

TEST_F(NvrtcCompiler, FailureHasTheCompilersLog) {
  KernelSpec spec = scale_spec();
  spec.name = "broken_kernel";
  spec.function = "gemm::there_is_no_such_function";
  const auto cubin = compile_kernel(spec, 90);
  ASSERT_FALSE(cubin.ok());
  for (const char* part : {"broken_kernel", "sm_90", "there_is_no_such_function", "NVRTC "})
    EXPECT_TRUE(contains(cubin.error(), part)) << part << " is not in: " << cubin.error();

  spec = scale_spec();
  spec.header = "no_such_file.cuh";
  EXPECT_TRUE(contains(compile_kernel(spec, 90).error(), "no_such_file.cuh"));
}

TEST_F(NvrtcCompiler, ManyThreadsAtOnce) {
  const std::vector<KernelSpec> specs = {scale_spec(), fill_spec(), guard_spec(), scale_spec(), compare_spec(), fill_spec()};
  std::vector<std::string> images(specs.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < specs.size(); ++i)
    threads.emplace_back([&, i] {
      const auto cubin = compile_kernel(specs[i], 80);
      if (cubin) images[i] = cubin->image;
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < specs.size(); ++i) EXPECT_TRUE(contains(images[i], kEntryName)) << specs[i].name;
  EXPECT_EQ(images[0], images[3]);
  EXPECT_EQ(images[1], images[5]);
  EXPECT_NE(images[0], images[1]);
}

TEST_F(NvrtcCompiler, KeyChangesWithWhateverChangesTheCode) {
  const KernelSpec base = scale_spec();
  std::vector<KernelSpec> specs(6, base);
  specs[1].function += "<1>";
  specs[2].args_type = "gemm::FillArgs";
  specs[3].threads = 128;
  specs[4].min_blocks = 2;
  specs[5].header = "check.cuh";
  std::set<std::string> keys;
  for (const KernelSpec& spec : specs) keys.insert(*compile_key(spec, 90));
  for (const int other : {80, 100, kFutureArch}) keys.insert(*compile_key(base, other));
  EXPECT_EQ(keys.size(), specs.size() + 3);
  EXPECT_EQ(*compile_key(base, 90), *compile_key(scale_spec(), 90));

  const std::string key = *compile_key(base, 90);
  EXPECT_TRUE(contains(key, "nvrtc " + nvrtc_version() + " libnvrtc"));
  EXPECT_TRUE(contains(key, "-arch=sm_90a"));
  EXPECT_TRUE(contains(key, "-std=c++20"));
  EXPECT_TRUE(contains(key, "headers ")) << "the embedded sources are part of the code, too";
}

// The rest runs this program again with an NVRTC that the loader finds first. The child prints what it says.
TEST(NvrtcChild, DISABLED_PrintsResult) {
  const auto cubin = compile_kernel(scale_spec(), 90);
  std::printf("%s|%s\n", nvrtc_version().c_str(), cubin ? "compiled" : cubin.error().c_str());
}

std::string result_with_library_path(const fs::path& folder) {
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  const std::string command = "LD_LIBRARY_PATH='" + folder.string() + "':\"$LD_LIBRARY_PATH\" '" + program +
                              "' --gtest_also_run_disabled_tests --gtest_filter=NvrtcChild.DISABLED_PrintsResult 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return "popen failed";
  std::string output;
  char part[4096];
  while (const size_t bytes = fread(part, 1, sizeof part, pipe)) output.append(part, bytes);
  pclose(pipe);
  return output;
}

class NvrtcFolder : public NvrtcCompiler {
 protected:
  void SetUp() override {
    NvrtcCompiler::SetUp();
    std::string name = (fs::temp_directory_path() / "gemm-nvrtc-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  static std::string path_of(const std::string& name) {
    const auto library = DynamicLibrary::open({name}, "");
    return library ? library->path() : "";
  }
  std::string nvrtc_name() const { return nvrtc_version().starts_with("12") ? "libnvrtc.so.12" : "libnvrtc.so.13"; }

  fs::path folder_;
};

TEST_F(NvrtcFolder, OtherLibraryUnderItsNameIsNamed) {
  fs::copy_file(path_of("libm.so.6"), folder_ / "libnvrtc.so.13");
  const std::string result = result_with_library_path(folder_);
  EXPECT_TRUE(contains(result, "none|")) << result;
  EXPECT_TRUE(contains(result, (folder_ / "libnvrtc.so.13").string() + " is not a working NVRTC")) << result;
  EXPECT_TRUE(contains(result, "Install NVRTC")) << result;
}

TEST_F(NvrtcFolder, BuiltinsBesideNvrtcAreFoundFirst) {
  std::ofstream(folder_ / ("libnvrtc-builtins.so." + nvrtc_version())) << "no library";
  const std::string result = result_with_library_path(folder_);
  EXPECT_TRUE(contains(result, nvrtc_version() + "|compiled")) << result;
}

TEST_F(NvrtcFolder, MissingBuiltinsAreNamed) {
  const std::string builtins = "libnvrtc-builtins.so." + nvrtc_version();
  fs::copy_file(path_of(nvrtc_name()), folder_ / nvrtc_name());
  std::ofstream(folder_ / builtins) << "no library";
  const std::string result = result_with_library_path(folder_);
  EXPECT_TRUE(contains(result, builtins + " is missing beside " + (folder_ / nvrtc_name()).string())) << result;
}

}  // namespace
}  // namespace gemm
