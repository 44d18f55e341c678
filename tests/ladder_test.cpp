// Every rung of the ladder on the emulated device.
#include <gtest/gtest.h>

#include "emulator/emulated_device.h"
#include "kernels/nvrtc_compiler.h"
#include "kernels/peaks.h"
#include "ladder_cases.h"

namespace gemm {
namespace {

TEST(Ladder, EveryRungIsRightOnEveryEdge) {
  const auto device = make_emulated_device();
  for (const LadderRung& rung : ladder_rungs())
    for (const test::ProductCase& c : test::ladder_cases())
      EXPECT_EQ(test::check_rung(*device, rung, c), "") << rung.name << ": " << c.problem;
}

// The check itself must notice a kernel that skips its last tile.
TEST(Ladder, CheckSeesAMissingTile) {
  EmulatorOptions options = default_emulator_options();
  options.faults = {{"ladder_", FaultKind::skips_last_tile}};
  const auto device = make_emulated_device(options);
  for (const LadderRung& rung : ladder_rungs())
    EXPECT_NE(test::check_rung(*device, rung, {{}, packed_problem(rung.tile_m + 1, 3, 5)}), "") << rung.name;
}

TEST(Ladder, RefusesWhatItCannotDo) {
  EXPECT_NE(why_not_on_ladder(packed_problem(8, 8, 8, Op::T)), "");
  EXPECT_NE(why_not_on_ladder(packed_problem(8, 8, 8, Op::N, Op::T)), "");
  EXPECT_NE(why_not_on_ladder(packed_problem(8, 8, 8, Op::N, Op::N, 2)), "");
  EXPECT_NE(why_not_on_ladder(packed_problem(int64_t{1} << 32, 8, 8)), "");
  EXPECT_NE(why_not_on_ladder(packed_problem(8, -1, 8)), "");
  EXPECT_EQ(why_not_on_ladder(packed_problem(8, 8, 8)), "");
}

TEST(Ladder, CompilesForOldAndNewGpus) {
  if (nvrtc_version() == "none") GTEST_SKIP() << "NVRTC is not installed";
  std::vector<KernelSpec> specs = {ffma_peak_spec(), copy_peak_spec()};
  for (const LadderRung& rung : ladder_rungs()) specs.push_back(ladder_spec(rung));
  for (const KernelSpec& spec : specs)
    for (const int compute_capability : {75, 90}) {
      const Result<Cubin> cubin = compile_kernel(spec, compute_capability);
      EXPECT_EQ(cubin.ok() ? "" : cubin.error(), "") << spec.name;
    }
}

TEST(Ladder, EmptyProblemLaunchesNothing) {
  EmulatorOptions options = default_emulator_options();
  options.faults = {{"ladder_", FaultKind::launch_refused}};
  const auto device = make_emulated_device(options);
  const LadderRung& rung = ladder_rungs().front();
  const auto kernel = device->build(ladder_spec(rung)).value_or_throw();
  EXPECT_TRUE(launch_ladder(*device, *kernel, rung, packed_problem(0, 8, 8), {}, nullptr).ok());
  EXPECT_FALSE(launch_ladder(*device, *kernel, rung, packed_problem(8, 8, 8), {}, nullptr).ok());
}

}  // namespace
}  // namespace gemm
