// Bundles: which kernels they hold, that they come back as they were, and that nothing damaged or foreign is taken.
#include "dispatch/bundle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <set>

#include "command.h"
#include "dispatch/reproducible.h"
#include "dispatch/selector.h"
#include "dispatch_cases.h"
#include "gemm/gemm.hpp"
#include "kernels/sha256.h"
#include "tuner/bundle_writer.h"

namespace gemm {
namespace {

const std::string kTablePath = std::string(GEMM_SOURCE_DIR) + "/configs/nvidia-h200.json";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::set<std::string> names_of(const std::vector<KernelSpec>& specs) {
  std::set<std::string> names;
  for (const KernelSpec& spec : specs) names.insert(spec.name);
  return names;
}

// Problems with dimensions of 1 to 5000; matrices are aligned to 16 bytes in all respects where `aligned`, else anyhow.
struct RandomProblems {
  std::mt19937 random{7};
  int64_t length(int64_t multiple) {
    const double octaves = std::uniform_real_distribution<>(0, 12.3)(random);
    return std::max<int64_t>(1, std::llround(std::exp2(octaves)) / multiple) * multiple;
  }
  Problem next(bool aligned) {
    const int64_t multiple = aligned ? 4 : 1;
    const auto op = [&] { return random() % 2 == 0 ? Op::N : Op::T; };
    Problem p = packed_problem(length(multiple), length(multiple), length(multiple), op(), op(), random() % 3 == 0 ? 10 : 1);
    if (aligned) return p;
    p.lda += static_cast<int64_t>(random() % 3);
    p.ldb += static_cast<int64_t>(random() % 3);
    p.stride_a = p.lda * p.columns_a(), p.stride_b = p.ldb * p.columns_b();
    return p;
  }
};

TEST(BundleKernels, HoldWhatDispatchAsksFor) {
  const Table table = load_table(kTablePath, nullptr).value_or_throw();
  const std::set<std::string> tuned = names_of(bundle_kernels(table, BundleKernels::tuned));
  const std::vector<KernelSpec> aligned_specs = bundle_kernels(table, BundleKernels::aligned);
  const std::set<std::string> aligned = names_of(aligned_specs), all = names_of(bundle_kernels(table, BundleKernels::all));
  EXPECT_EQ(aligned.size(), aligned_specs.size()) << "each kernel once";
  EXPECT_LT(tuned.size(), aligned.size());
  EXPECT_LT(aligned.size(), all.size());
  EXPECT_LT(all.size(), 5000u);
  EXPECT_TRUE(std::ranges::includes(aligned, tuned));
  EXPECT_TRUE(std::ranges::includes(all, aligned));
  EXPECT_TRUE(tuned.contains("scale") && tuned.contains("reduce_splits"));

  const auto kernel_of = [](const Candidate& candidate, const Problem& problem) {
    return variant_spec(variant_of(candidate.choice, problem, {})).name;
  };
  const auto own_candidates = [&](const Problem& problem) {
    std::vector<Candidate> own = choose(&table, problem, table.device, kWorkspaceBytes).candidates;
    std::erase_if(own, [](const Candidate& candidate) { return candidate.use_cublas; });
    return own;
  };
  for (const TablePoint& point : table.points)
    if (!point.kernel.empty()) {
      EXPECT_TRUE(tuned.contains(kernel_of(own_candidates(point.problem).front(), point.problem))) << point.problem;
    }
  RandomProblems problems;
  for (int i = 0; i < 60; ++i) {
    const Problem packed = problems.next(true), any = problems.next(false);
    for (const Candidate& candidate : own_candidates(packed))
      EXPECT_TRUE(aligned.contains(kernel_of(candidate, packed))) << packed << " by " << to_string(candidate);
    bool served = false;
    for (const Candidate& candidate : own_candidates(any)) {
      EXPECT_TRUE(all.contains(kernel_of(candidate, any))) << any << " by " << to_string(candidate);
      served = served || tuned.contains(kernel_of(candidate, any));
    }
    EXPECT_TRUE(served) << any << ": no kernel at all in the smallest bundle";
  }
  Problem far_apart = packed_problem(40, 40, 40);
  far_apart.lda = int64_t{1} << 29;
  EXPECT_TRUE(std::ranges::any_of(own_candidates(far_apart),
                                  [&](const Candidate& c) { return tuned.contains(kernel_of(c, far_apart)); }));
}

// Under GEMM_POLICY_REPRODUCIBLE nothing else may serve, so every problem's first kernel has to be there.
TEST(BundleKernels, HoldTheReproducibleOnesForEveryLayout) {
  const Table table = load_table(kTablePath, nullptr).value_or_throw();
  const std::set<std::string> tuned = names_of(bundle_kernels(table, BundleKernels::tuned));
  const std::vector<KernelConfig> configs = reproducible_configs();
  std::set<std::string> seen;
  RandomProblems problems;
  for (int i = 0; i < 200; ++i) {
    Problem p = problems.next(i % 2 == 0);
    if (i % 7 == 0) p.lda = int64_t{1} << 30, p.stride_a = p.lda * p.columns_a();
    for (const Choice& choice : reproducible_choices(p)) {
      EXPECT_NE(std::ranges::find(configs, choice.config), configs.end()) << p << " by " << to_string(choice);
      seen.insert(config_id(choice.config));
      Operands indirect;
      indirect.indirect.scalars = true;
      for (const Operands& operands : {Operands{}, indirect}) {
        const std::string kernel = variant_spec(variant_of(choice, p, operands)).name;
        EXPECT_TRUE(tuned.contains(kernel)) << p << " needs " << kernel;
      }
    }
  }
  EXPECT_EQ(seen.size(), configs.size()) << "all of them are asked for";
}

// A bundle of the emulated device's table, with images that are only bytes.
class BundleFile : public testing::Test {
 protected:
  static Table table() {
    return test::table_of(default_emulator_options().info, {emulated_configs().front(), 1, Reduction::ticket},
                          {packed_problem(64, 64, 64)});
  }
  static std::vector<KernelSpec> specs() { return {scale_spec(), reduce_spec(), fill_spec()}; }
  static std::string image_of(const KernelSpec& spec) { return std::string("\x7f\0ELF ", 6) + spec.name + "\n{\n"; }
  static std::string bundle() {
    std::vector<BundledKernel> kernels;
    for (const KernelSpec& spec : specs())
      kernels.push_back({spec.name, CubinStore::key_of(spec), {image_of(spec), "a log", {"sm_90a", false}}});
    return write_bundle(table(), kernels, "0.1.0", "13.0");
  }
  // As someone would who knows the format: a bundle whose checksum is right.
  static std::string sealed(const std::string& header, const std::string& payload) {
    const std::string hashed =
        std::to_string(header.size()) + " " + std::to_string(payload.size()) + "\n" + header + payload;
    return "gemm bundle 1\n" + sha256_hex(hashed) + "\n" + hashed;
  }
  std::string write(const std::string& content) const {
    std::ofstream(folder_.file("b.bundle"), std::ios::binary) << content;
    return folder_.file("b.bundle");
  }
  std::string why_refused(const std::string& content) const {
    const Result<LoadedTable> loaded = load_for_device(write(content), default_emulator_options().info, nullptr);
    return loaded ? "" : loaded.error();
  }
  test::TemporaryFolder folder_;
};

TEST_F(BundleFile, ComesBackAsItWas) {
  const Result<LoadedTable> loaded = load_table_or_bundle(write(bundle()), nullptr);
  ASSERT_TRUE(loaded.ok()) << loaded.error();
  EXPECT_EQ(to_json(loaded->table), to_json(table()));
  ASSERT_TRUE(loaded->kernels);
  EXPECT_EQ(loaded->kernels->size(), specs().size());
  for (const KernelSpec& spec : specs()) {
    const std::optional<Cubin> cubin = loaded->kernels->find(spec);
    ASSERT_TRUE(cubin) << spec.name;
    EXPECT_EQ(cubin->image, image_of(spec));
    EXPECT_EQ(cubin->target, (CompileTarget{"sm_90a", false}));
  }
  EXPECT_FALSE(loaded->kernels->find(guard_spec()));
  KernelSpec other = scale_spec();
  other.threads = 128;
  EXPECT_FALSE(loaded->kernels->find(other)) << "the same name, but other code";

  ASSERT_TRUE(save_table(table(), folder_.file("t.json")).ok());
  const Result<LoadedTable> plain = load_table_or_bundle(folder_.file("t.json"), nullptr);
  ASSERT_TRUE(plain.ok()) << plain.error();
  EXPECT_FALSE(plain->kernels);
}

TEST_F(BundleFile, DamageIsRefusedWithTheReason) {
  const std::string whole = bundle();
  EXPECT_EQ(why_refused(whole), "");
  for (size_t bytes = std::string("gemm bundle ").size(); bytes < whole.size(); bytes += 37) {
    const std::string why = why_refused(whole.substr(0, bytes));
    EXPECT_TRUE(contains(why, "truncated") || contains(why, "damaged")) << bytes << " bytes: " << why;
  }
  EXPECT_TRUE(contains(why_refused(whole.substr(0, whole.size() - 1)), "truncated"));
  EXPECT_TRUE(contains(why_refused(whole + "x"), "damaged"));
  for (size_t at = 0; at < whole.size(); at += 17) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    EXPECT_NE(why_refused(flipped), "") << "byte " << at << " of " << whole.size();
  }
  std::string newer = whole;
  newer[std::string("gemm bundle ").size()] = '2';
  EXPECT_TRUE(contains(why_refused(newer), "bundle version 2, this library reads version 1")) << why_refused(newer);
  EXPECT_TRUE(contains(why_refused(newer), "b.bundle"));
  EXPECT_FALSE(load_table_or_bundle(folder_.path(), nullptr).ok()) << "a folder";
}

TEST_F(BundleFile, WhatNoWriterOfOursMakesIsRefusedToo) {
  const std::string payload = to_json(table());
  const std::string table_bytes = std::to_string(payload.size());
  const auto header = [&](const std::string& sources, const std::string& bytes, const std::string& kernels) {
    return R"({"gemm_version":"9.9.9","kernel_sources":")" + sources +
           R"(","compute_capability":90,"arch":"sm_90a","table_bytes":)" + bytes + R"(,"kernels":[)" + kernels + "]}";
  };
  const std::string& own = kernel_sources_digest();
  const auto kernel = [](const std::string& offset, const std::string& bytes) {
    return R"({"name":"n","key":"k","offset":)" + offset + R"(,"bytes":)" + bytes + "}";
  };
  EXPECT_EQ(why_refused(sealed(header(own, table_bytes, kernel("0", "4")), payload)), "");
  const std::pair<std::string, const char*> cases[] = {
      {header("0123", table_bytes, ""), "gemm 9.9.9 from other sources"},
      {header(own, table_bytes, kernel("0", "0")), "outside of the file"},
      {header(own, table_bytes, kernel(table_bytes, "1")), "outside of the file"},
      {header(own, table_bytes, kernel("18446744073709551615", "9")), "no size or offset"},
      {header(own, table_bytes, kernel("0", "1") + "," + kernel("1", "1")), "twice"},
      {header(own, table_bytes, R"({"name":"n"})"), "key"},
      {header(own, "7", ""), "parse error"},
      {header(own, "-1", ""), "no size or offset"},
      {"{", "parse error"},
      {"[]", ""},
      {std::string(1000, '['), "levels deep"},
  };
  for (const auto& [text, reason] : cases) {
    const std::string why = why_refused(sealed(text, payload));
    EXPECT_NE(why, "") << text;
    EXPECT_TRUE(contains(why, reason)) << why;
  }
}

TEST_F(BundleFile, AnotherArchitectureIsRefused) {
  DeviceInfo device = default_emulator_options().info;
  device.name = "NVIDIA Other";
  for (const int capability : {80, 89, 100}) {
    device.limits.compute_capability = capability;
    const Result<LoadedTable> loaded = load_for_device(write(bundle()), device, nullptr);
    ASSERT_FALSE(loaded.ok()) << capability;
    for (const char* part : {"compute capability 9.0 (sm_90a", "NVIDIA Other has ", "b.bundle"})
      EXPECT_TRUE(contains(loaded.error(), part)) << loaded.error();
  }
}

TEST_F(BundleFile, AContextTakesItLikeATable) {
  std::vector<std::string> warnings;
  Handle handle(make_context(make_emulated_device(), {false, [&](const std::string& text) { warnings.push_back(text); }}));
  const std::string path = write(bundle());
  ASSERT_EQ(gemm_load_table(handle.get(), path.c_str()), GEMM_SUCCESS) << gemm_last_error();
  const Problem tuned = packed_problem(64, 64, 64);
  EXPECT_TRUE(contains(handle.explain(test::c_problem(tuned)), path)) << handle.explain(test::c_problem(tuned));
  EXPECT_EQ(test::check_case(handle.get(), {tuned}), "");

  EXPECT_EQ(gemm_load_table(handle.get(), write(bundle().substr(0, bundle().size() / 2)).c_str()), GEMM_TABLE_ERROR);
  EXPECT_TRUE(contains(gemm_last_error(), "truncated")) << gemm_last_error();
  EXPECT_TRUE(contains(handle.explain(test::c_problem(tuned)), "exact")) << "the old table stays";
  EXPECT_TRUE(warnings.empty()) << warnings.front();
}

TEST(BundleCompiler, CompilesWhatADeviceWouldAskFor) {
  if (const auto target = target_for(90); !target) GTEST_SKIP() << target.error();
  std::vector<KernelSpec> specs = {scale_spec(), reduce_spec(), fill_spec(), guard_spec()};
  const std::vector<BundledKernel> kernels = compile_kernels(specs, 90, 2, false);
  ASSERT_EQ(kernels.size(), specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    EXPECT_EQ(kernels[i].name, specs[i].name);
    EXPECT_EQ(kernels[i].key, CubinStore::key_of(specs[i]));
    EXPECT_EQ(kernels[i].cubin.image.substr(1, 3), "ELF");
    EXPECT_EQ(kernels[i].cubin.target.arch, "sm_90a");
  }
  specs[1].function = "no_such_function";
  try {
    compile_kernels(specs, 90, 2, false);
    FAIL() << "a kernel that does not compile is left out silently";
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "no_such_function")) << error.what();
  }
}

TEST(BundleProgram, SaysWhatItWouldDoAndWhatIsWrong) {
  const std::string program = std::string(GEMM_TOOLS_DIR) + "/gemm-tune ";
  if (!std::ifstream(std::string(GEMM_TOOLS_DIR) + "/gemm-tune")) GTEST_SKIP() << "gemm-tune was not built";
  if (const auto target = target_for(90); !target) GTEST_SKIP() << target.error();
  struct Case {
    std::string arguments;
    int exit_code;
    const char* message;
  };
  const std::string table = "'" + kTablePath + "'";
  for (const Case& c : {Case{"--bundle x.bundle --table " + table + " --dry-run", 0, "kernels for NVIDIA H200 (sm_90a)"},
                        {"--bundle x.bundle", 2, "--table"},
                        {"--table x.json", 2, "--bundle"},
                        {"--bundle x.bundle --table x.json --bundle-kernels some", 2, "--bundle-kernels"},
                        {"--bundle " + table + " --table " + table + " --dry-run", 2, "overwrite the table"},
                        {"--bundle x.bundle --table missing.json", 1, "missing.json"},
                        {"--bundle no/such/x.bundle --table " + table, 1, "no/such/x.bundle"}}) {
    const test::CommandResult result = test::run_command("cd /tmp && " + program + c.arguments);
    EXPECT_EQ(result.exit_code, c.exit_code) << c.arguments << "\n" << result.output;
    EXPECT_TRUE(contains(result.output, c.message)) << c.arguments << "\n" << result.output;
  }
  EXPECT_FALSE(std::ifstream("/tmp/x.bundle")) << "a dry run writes nothing";
}

}  // namespace
}  // namespace gemm
