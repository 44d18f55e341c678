// Problems, alignment, splits and legality: what is decided before a kernel runs.
#include "kernels/launch.h"

#include <gtest/gtest.h>

#include <limits>

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

// What callers may pass, of which nothing that is accessed lies so far away. UBSan sees what else overflows.
TEST(Variant, NoLeadingDimensionOrSizeOverflows) {
  for (const int64_t ld : {int64_t{1} << 30, int64_t{1} << 58, std::numeric_limits<int64_t>::max()}) {
    Problem p = packed_problem(64, 1, 1);
    p.lda = ld;
    EXPECT_TRUE(variant_for(emulated_configs().front(), p, {}).long_ld) << ld;
  }
  const Choice choice{emulated_configs()[2], 2, Reduction::cluster, Relayout::ab};
  Problem p{1, 1, 1};
  p.m = p.k = p.lda = p.ldb = p.ldc = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(why_illegal(choice, p, default_emulator_options().info, kWorkspaceBytes), "a dimension does not fit 32 bits");
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
  const DeviceInfo device = default_emulator_options().info;
  const Problem p = packed_problem(640, 640, 4096);
  EXPECT_EQ(why_illegal({kConfig, 4, Reduction::ticket}, p, device, 32 << 20), "");
  EXPECT_NE(why_illegal({kConfig, 0, Reduction::ticket}, p, device, 32 << 20).find("split_k"), std::string::npos);
  EXPECT_NE(why_illegal({kConfig, 100000, Reduction::ticket}, p, device, 32 << 20).find("split_k"), std::string::npos);
  EXPECT_NE(why_illegal({kConfig, 4, Reduction::ticket}, p, device, 1024).find("workspace"), std::string::npos);
  EXPECT_NE(why_illegal({kConfig, 1, Reduction::ticket}, packed_problem(int64_t{1} << 32, 1, 1), device, 0).find("32 bits"),
            std::string::npos);
  KernelConfig bad = kConfig;
  bad.BM = 7;
  EXPECT_NE(why_illegal({bad, 1, Reduction::ticket}, p, device, 0), "");
}

TEST(Reduction, NamesReadBack) {
  for (const Reduction reduction : {Reduction::ticket, Reduction::kernel, Reduction::stream_k, Reduction::cluster}) {
    Reduction read = Reduction::ticket;
    EXPECT_TRUE(from_string(to_string(reduction), read)) << to_string(reduction);
    EXPECT_EQ(read, reduction);
  }
  Reduction read = Reduction::kernel;
  EXPECT_FALSE(from_string("clusters", read));
}

TEST(Legality, ClustersNeedAGpuAKernelAndASplitThatHaveThem) {
  const Problem p = packed_problem(640, 640, 4096);
  const auto why = [&](const KernelConfig& config, int split, DeviceLimits limits = {}) {
    DeviceInfo device = default_emulator_options().info;
    device.limits = limits;
    return why_illegal({config, split, Reduction::cluster}, p, device, 0);
  };
  DeviceLimits ampere, little;
  ampere.compute_capability = 80;
  // Its ring fits, its result does not.
  const KernelConfig wide{128, 128, 8, 64, 32, 2, 4, 4, 2};
  little.shared_bytes_per_block = 48 << 10;
  KernelConfig specialized = emulated_configs()[10];
  ASSERT_EQ(specialized.load, LoadPath::warp_specialized);

  for (const int split : {2, 3, 8}) EXPECT_EQ(why(kConfig, split), "");
  EXPECT_NE(why(kConfig, 1).find("split_k 2 to 8"), std::string::npos);
  EXPECT_NE(why(kConfig, 9).find("split_k 2 to 8"), std::string::npos);
  EXPECT_NE(why(kConfig, 4, ampere).find("sm_90"), std::string::npos);
  EXPECT_NE(why(specialized, 4).find("warp_specialized"), std::string::npos);
  EXPECT_NE(why(emulated_batch_configs().front(), 4).find("tile family"), std::string::npos);
  EXPECT_EQ(why(wide, 4), "");
  EXPECT_NE(why(wide, 4, little).find("partial tile"), std::string::npos);
}

TEST(Variant, OnlyClustersKeepAPartialTileBesideTheRing) {
  const Problem p = packed_problem(128, 128, 4096);
  const KernelConfig wide{128, 128, 8, 64, 32, 2, 4, 4, 2};
  const KernelVariant plain = variant_of({wide, 4, Reduction::ticket}, p, {}),
                      cluster = variant_of({wide, 4, Reduction::cluster}, p, {});
  EXPECT_EQ(plain, variant_for(wide, p, {}));
  EXPECT_FALSE(plain.cluster);
  EXPECT_TRUE(cluster.cluster);
  EXPECT_NE(variant_spec(plain).name, variant_spec(cluster).name);
  EXPECT_NE(variant_spec(plain).function, variant_spec(cluster).function);
  EXPECT_EQ(shared_bytes(cluster), 4 * 128 * 128 + 16);
  EXPECT_LT(shared_bytes(plain), shared_bytes(cluster));
}

TEST(PersistentGrid, SharesTheLastWaves) {
  const KernelConfig config{64, 64, 16, 32, 32, 2, 4, 4, 3, 1, 1, LoadPath::warp_specialized, FmaOrder::columns};
  const auto grid = [&](int64_t tiles, int64_t k, Reduction reduction, int split = 1) {
    return persistent_grid({config, split, reduction}, packed_problem(64, 64 * tiles, k), 10);
  };
  const struct {
    PersistentGrid grid;
    int blocks, whole_items, shared_tiles;
  } cases[] = {{grid(25, 160, Reduction::ticket), 10, 25, 0},    {grid(7, 160, Reduction::ticket, 3), 10, 21, 0},
               {grid(4, 160, Reduction::ticket), 4, 4, 0},       {grid(25, 160, Reduction::stream_k), 10, 10, 15},
               {grid(15, 160, Reduction::stream_k), 10, 0, 15},  {grid(20, 160, Reduction::stream_k), 10, 20, 0},
               {grid(4, 160, Reduction::stream_k), 10, 0, 4},    {grid(1, 16 * 12, Reduction::stream_k), 3, 0, 1},
               {grid(4, 160, Reduction::stream_k, 5), 10, 0, 4}, {grid(1, 16, Reduction::stream_k), 1, 0, 1}};
  for (const auto& c : cases) {
    EXPECT_EQ(c.grid.blocks, c.blocks) << &c - cases;
    EXPECT_EQ(c.grid.whole_items, c.whole_items) << &c - cases;
    EXPECT_EQ(c.grid.shared_tiles, c.shared_tiles) << &c - cases;
  }
}

TEST(Workspace, HoldsThePartialTiles) {
  EXPECT_EQ(workspace_bytes({kConfig, 1, Reduction::ticket}, packed_problem(64, 64, 4096), 132), 0);
  EXPECT_EQ(workspace_bytes({kConfig, 4, Reduction::ticket}, packed_problem(65, 64, 4096), 132), 2 * 4 * 64 * 64 * 4);
  EXPECT_EQ(workspace_bytes({kConfig, 4, Reduction::cluster}, packed_problem(65, 64, 4096), 132), 0);
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
