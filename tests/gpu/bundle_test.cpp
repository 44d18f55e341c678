// A bundle on a GPU, in a process that has no NVRTC and an empty cache: what a target machine is.
#include "dispatch/bundle.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "command.h"
#include "dispatch_cases.h"
#include "gemm/gemm.hpp"
#include "kernels/dynamic_library.h"
#include "kernels/file_io.h"
#include "tuner/bundle_writer.h"

namespace gemm::test {
namespace {

const Problem kTuned = packed_problem(200, 130, 96);
const Choice kChoice{emulated_configs().front(), 2, Reduction::kernel};

// All that kTuned and C = beta * C take.
std::vector<KernelSpec> few_kernels() {
  return {variant_spec(variant_of(kChoice, kTuned, {})), reduce_spec(), scale_spec()};
}

// Run by the test below, as a process of its own. Prints nothing but what is wrong.
TEST(BundleChild, DISABLED_ServesWithoutACompiler) {
  ASSERT_EQ(nvrtc_version(), "none") << "NVRTC was to be hidden";
  std::string warning;
  ContextOptions options;
  options.warn = [&](const std::string& text) { warning = text; };
  const Handle handle(make_context(open_cuda_device(0).value_or_throw(), options));
  EXPECT_EQ(warning, "");
  const std::string text = handle.explain(c_problem(kTuned));
  EXPECT_NE(text.find("exact"), std::string::npos) << text;
  EXPECT_NE(text.find(config_id(kChoice.config)), std::string::npos) << text;
  EXPECT_EQ(check_case(handle.get(), {kTuned}), "");
  EXPECT_EQ(check_case(handle.get(), {kTuned, 0, 3}), "") << "by the scale kernel";
}

TEST(BundleOnGpu, ServesWithoutACompiler) {
  std::string why;
  if (cuda_device_count(&why) == 0) GTEST_SKIP() << why;
  const DeviceInfo info = open_cuda_device(0).value_or_throw()->info();
  if (const auto target = target_for(info.limits.compute_capability); !target || target->is_ptx)
    GTEST_SKIP() << "no NVRTC that makes machine code for this GPU";
  const TemporaryFolder folder;
  const std::string bundle =
      write_bundle(table_of(info, kChoice, {kTuned}),
                   compile_kernels(few_kernels(), info.limits.compute_capability, 3, false), "0.1.0", nvrtc_version());
  ASSERT_TRUE(replace_file(folder.file("b.bundle"), bundle).ok());
  // Another library under its names, found first, hides NVRTC.
  const std::string other = DynamicLibrary::open({"libm.so.6"}, "").value_or_throw().path();
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
    std::filesystem::copy_file(other, folder.file(name));
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const CommandResult child =
      run_command("GEMM_TABLE='" + folder.file("b.bundle") + "' GEMM_CACHE_DIR='" + folder.file("cache") +
                  "' LD_LIBRARY_PATH='" + folder.path() + "':\"$LD_LIBRARY_PATH\" '" + program +
                  "' --gtest_also_run_disabled_tests --gtest_filter=BundleChild.DISABLED_ServesWithoutACompiler");
  EXPECT_EQ(child.exit_code, 0) << child.output;
  EXPECT_NE(child.output.find("PASSED  ] 1 test"), std::string::npos) << child.output;
  EXPECT_FALSE(std::filesystem::exists(folder.file("cache"))) << "something was compiled";
}

}  // namespace
}  // namespace gemm::test
