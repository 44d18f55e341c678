// Problems, alignment, splits and legality: what is decided before a kernel runs.
#include "kernels/launch.h"

#include <gtest/gtest.h>

#include "emulator/emulated_device.h"

namespace gemm {
namespace {

const KernelConfig kConfig = emulated_configs()[0];

TEST(Problem, RefusesWhatBlasRefuses) {
  struct Case {
    Problem problem;
    bool refused;
  };
  const auto changed = [](Problem p, int64_t lda, int64_t ldb, int64_t ldc) {
    p.lda = lda, p.ldb = ldb, p.ldc = ldc;
    return p;
  };
  const Case cases[] = {
      {packed_problem(3, 4, 5), false},
      {changed(packed_problem(600, 500, 500), 500, 500, 600), true},
      {changed(packed_problem(3, 4, 5), 0, 5, 3), true},
      {changed(packed_problem(3, 4, 5), 3, 4, 3), true},
      {changed(packed_problem(3, 4, 5), 3, 5, 1), true},
      {changed(packed_problem(0, 4, 5), 1, 5, 0), false},
      {changed(packed_problem(4, 4, 0), 1, 1, 4), false},
      {packed_problem(-1, 4, 5), true},
      {packed_problem(4, 4, 5, Op::N, Op::N, -1), true},
  };
  for (const Case& c : cases)
    EXPECT_EQ(!why_refused(c.problem).empty(), c.refused) << c.problem << ": " << why_refused(c.problem);
}

TEST(Problem, ExtentEndsAtTheLastElement) {
  Problem p = packed_problem(3, 4, 5, Op::T, Op::N, 2);
  p.lda = 7, p.stride_a = 100;
  EXPECT_EQ(p.extent_a(), 100 + 2 * 7 + 5);
  EXPECT_EQ(packed_problem(3, 4, 0).extent_a(), 0);
}

TEST(WidestVector, LooksAtPointerLdAndStride) {
  const auto* base = reinterpret_cast<const float*>(uintptr_t{4096});
  EXPECT_EQ(widest_vector(base, 64, 8, 512, 2), 4);
  EXPECT_EQ(widest_vector(base + 1, 64, 8, 512, 2), 1);
  EXPECT_EQ(widest_vector(base + 2, 64, 8, 512, 2), 2);
  EXPECT_EQ(widest_vector(base, 65, 8, 512, 2), 1);
  EXPECT_EQ(widest_vector(base, 66, 8, 512, 2), 2);
  EXPECT_EQ(widest_vector(base, 65, 1, 512, 2), 4) << "one column has no leading dimension";
  EXPECT_EQ(widest_vector(base, 64, 8, 514, 2), 2);
  EXPECT_EQ(widest_vector(base, 64, 8, 513, 2), 1);
  EXPECT_EQ(widest_vector(base, 64, 8, 513, 1), 4) << "one matrix has no stride";
}

// compute-sanitizer counts a cut 16-byte copy in full, so none may reach past the last row of a buffer.
TEST(Variant, NoLoadIsCutByTheLastRow) {
  const auto* base = reinterpret_cast<const float*>(uintptr_t{4096});
  const auto widths = [&](int64_t m, int64_t n, int64_t k, Op op_a, Op op_b) {
    Problem p = packed_problem(m, n, k, op_a, op_b);
    p.lda = (p.lda + 3) / 4 * 4, p.ldb = (p.ldb + 3) / 4 * 4;  // padded: only the sizes are odd
    const KernelVariant v = variant_for(emulated_configs()[2], p, {base, base, const_cast<float*>(base)});
    return std::pair(v.vec_a, v.vec_b);
  };
  EXPECT_EQ(widths(64, 64, 64, Op::N, Op::T), std::pair(4, 4));
  EXPECT_EQ(widths(65, 66, 64, Op::N, Op::T), std::pair(1, 2));
  EXPECT_EQ(widths(65, 66, 67, Op::T, Op::N), std::pair(4, 4)) << "along k only the tail is cut, and copied in pieces";
}

TEST(Split, EveryBlockGetsAStage) {
  const auto split = [](int64_t k, int wanted) { return effective_split(kConfig, packed_problem(64, 64, k), wanted); };
  EXPECT_EQ(split(kConfig.BK, 8), 1);
  EXPECT_EQ(split(8 * kConfig.BK, 8), 8);
  EXPECT_EQ(split(9 * kConfig.BK, 8), 5) << "two stages each leave five blocks";
  EXPECT_EQ(split(1, 4), 1);
  EXPECT_EQ(split(0, 4), 1);
}

TEST(Legality, NamesTheReason) {
  const DeviceLimits limits;
  const Problem p = packed_problem(640, 640, 4096);
  EXPECT_EQ(why_illegal({kConfig, 4, Reduction::ticket}, p, limits, 32 << 20), "");
  EXPECT_NE(why_illegal({kConfig, 0, Reduction::ticket}, p, limits, 32 << 20).find("split_k"), std::string::npos);
  EXPECT_NE(why_illegal({kConfig, 100000, Reduction::ticket}, p, limits, 32 << 20).find("split_k"), std::string::npos);
  EXPECT_NE(why_illegal({kConfig, 4, Reduction::ticket}, p, limits, 1024).find("workspace"), std::string::npos);
  EXPECT_NE(why_illegal({kConfig, 1, Reduction::ticket}, packed_problem(int64_t{1} << 32, 1, 1), limits, 0).find("32 bits"),
            std::string::npos);
  KernelConfig bad = kConfig;
  bad.BM = 7;
  EXPECT_NE(why_illegal({bad, 1, Reduction::ticket}, p, limits, 0), "");
}

TEST(Workspace, HoldsThePartialTiles) {
  EXPECT_EQ(workspace_bytes({kConfig, 1, Reduction::ticket}, packed_problem(64, 64, 4096)), 0);
  EXPECT_EQ(workspace_bytes({kConfig, 4, Reduction::ticket}, packed_problem(65, 64, 4096)), 2 * 4 * 64 * 64 * 4);
}

TEST(Launch, RefusedLaunchIsAFailureAndDoesNotStick) {
  EmulatorOptions options = default_emulator_options();
  options.faults = {{"tile_64x64", FaultKind::launch_refused}};
  const auto device = make_emulated_device(options);
  const Problem p = packed_problem(8, 8, 8);
  const Buffer memory = device->allocate(3 * 64 * sizeof(float)).value_or_throw();
  device->set_words(memory.as(), 0, 3 * 64, nullptr);
  const Operands operands{memory.as<float>(), memory.as<float>() + 64, memory.as<float>() + 128};
  const TilePlan refused = build_plan(*device, {emulated_configs()[0], 1, Reduction::ticket}, p, operands).value_or_throw();
  EXPECT_FALSE(launch_plan(*device, refused, p, operands, nullptr, nullptr, nullptr).ok());
  const TilePlan fine = build_plan(*device, {emulated_configs()[2], 1, Reduction::ticket}, p, operands).value_or_throw();
  EXPECT_TRUE(launch_plan(*device, fine, p, operands, nullptr, nullptr, nullptr).ok());
}

TEST(EmulatedDevice, RunsOutOfMemoryWithAReason) {
  const auto device = make_emulated_device();
  const Result<Buffer> buffer = device->allocate(size_t{1} << 40);
  ASSERT_FALSE(buffer.ok());
  EXPECT_NE(buffer.error().find("memory"), std::string::npos);
}

TEST(EmulatedDevice, TimesAreModelled) {
  const auto device = make_emulated_device();
  EXPECT_STREQ(device->info().provenance(), "modelled");
  const Problem small = packed_problem(64, 64, 64), large = packed_problem(4096, 4096, 4096);
  const Choice choice{kConfig, 1, Reduction::ticket};
  EXPECT_LT(modelled_time_us(device->info(), choice, small), modelled_time_us(device->info(), choice, large));
}

}  // namespace
}  // namespace gemm
