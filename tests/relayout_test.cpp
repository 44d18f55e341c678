// Copies of operands before a product: what is copied where, in which panels, and that the products are right.
#include "kernels/relayout.h"

#include <gtest/gtest.h>

#include "dispatch/cost_model.h"
#include "dispatch/split_search.h"
#include "emulator/emulated_configs.h"
#include "emulator/emulated_device.h"
#include "relayout_cases.h"

namespace gemm {
namespace {

// One that only gains by copies, one that takes another load path for operands that are not aligned, and one of cp.async.
const KernelConfig kConfigs[] = {emulated_configs()[10], emulated_configs()[8], emulated_configs()[0]};

TEST(Relayout, ProductsOnCopiesAreRight) {
  const std::unique_ptr<Device> device = make_emulated_device();
  for (const KernelConfig& config : kConfigs)
    for (const Relayout relayout : test::kRelayouts) {
      // The copies are the same for all.
      if (config != kConfigs[0] && relayout != Relayout::ab) continue;
      for (const Op op_a : {Op::N, Op::T})
        for (const Op op_b : {Op::N, Op::T}) test::expect_right(*device, test::relayout_cases(config, relayout, op_a, op_b));
    }
}

// Few, since under ThreadSanitizer each CUDA thread is a thread of the host.
TEST(Relayout, SanitizerSelection) {
  const std::unique_ptr<Device> device = make_emulated_device();
  Problem p = packed_problem(65, 67, 66, Op::T, Op::N);
  p.lda += 1;
  test::expect_right(*device, {{{kConfigs[0], 1, Reduction::ticket, Relayout::ab}, p, 1, 1}});
}

TEST(Relayout, CopiesHaveContiguousAlignedRows) {
  for (const Relayout relayout : test::kRelayouts)
    for (const Op op_a : {Op::N, Op::T})
      for (const Op op_b : {Op::N, Op::T}) {
        Problem p = packed_problem(1001, 515, 77, op_a, op_b);
        const Problem relaid = relaid_problem(relayout, p);
        EXPECT_EQ(relaid.op_a, copies_a(relayout) ? Op::N : op_a);
        EXPECT_EQ(relaid.op_b, copies_b(relayout) ? Op::T : op_b);
        EXPECT_EQ(gains_by_copy_a(relaid), !copies_a(relayout)) << "odd sizes gain in any layout";
        EXPECT_EQ(gains_by_copy_b(relaid), !copies_b(relayout));
        EXPECT_EQ(relaid.ldc, p.ldc);
        EXPECT_EQ(why_refused(relaid), "");
      }
  EXPECT_FALSE(gains_by_copy_a(packed_problem(64, 64, 64, Op::N, Op::T)));
  EXPECT_FALSE(gains_by_copy_b(packed_problem(64, 64, 64, Op::N, Op::T)));
  EXPECT_TRUE(gains_by_copy_a(packed_problem(64, 64, 64, Op::T, Op::T)));
  EXPECT_TRUE(gains_by_copy_b(packed_problem(64, 64, 64, Op::N, Op::N)));
}

TEST(Relayout, PanelsCoverTheProductOnceAndFit) {
  struct Case {
    Problem problem;
    Relayout relayout;
    bool possible;
    int64_t panels;
  };
  const Case cases[] = {
      {packed_problem(4096, 4096, 4096, Op::N, Op::N), Relayout::b, true, 1},
      {packed_problem(4096, 4096, 4096, Op::T, Op::N), Relayout::ab, true, 2},
      {packed_problem(8192, 8192, 8192, Op::N, Op::N), Relayout::b, true, 3},
      {packed_problem(8192, 8192, 8192, Op::T, Op::N), Relayout::a, true, 3},
      {packed_problem(8192, 8192, 8192, Op::T, Op::N), Relayout::ab, false, 0},
      {packed_problem(24001, 512, 2816, Op::T, Op::N), Relayout::ab, true, 3},
      {packed_problem(512, 24001, 2816, Op::T, Op::N), Relayout::ab, true, 3},
      {packed_problem(4000, 4000, 30000, Op::T, Op::N), Relayout::a, false, 0},
      {packed_problem(1000, 1000, 100, Op::T, Op::N, 1000), Relayout::a, false, 0},
      {packed_problem(100, 100, 100, Op::T, Op::N, 70000), Relayout::a, false, 0},
      {packed_problem(2000000000, 2000000000, 2000000000, Op::T, Op::N), Relayout::ab, false, 0},
  };
  for (const Case& c : cases) {
    const Problem& p = c.problem;
    EXPECT_EQ(why_not_relaid(c.relayout, p) == nullptr, c.possible) << p;
    if (!c.possible) continue;
    const RelaidProduct product = relaid_product(c.relayout, p);
    EXPECT_EQ(product.panels, c.panels) << p;
    EXPECT_LE(product.copy_bytes(), kMostCopyBytes) << p;
    const int64_t before_last = product.panels - 1;
    EXPECT_EQ(product.first_row(before_last) + product.last.m, p.m) << p;
    EXPECT_EQ(product.first_column(before_last) + product.last.n, p.n) << p;
    EXPECT_GT(product.last.m * product.last.n, 0) << p;
    EXPECT_EQ(product.panel.k, p.k);
  }
}

// Each panel's copies lie where its product reads them, and the operand that is not in panels is copied once.
TEST(Relayout, EachPanelCopiesItsPart) {
  const Problem p = packed_problem(4096, 4096, 4096, Op::T, Op::N);
  const RelaidProduct product = relaid_product(Relayout::ab, p);
  ASSERT_FALSE(product.along_m);
  std::vector<float> a(1), b(1), workspace(1);
  const RelayoutArgs first = copies_of_panel(Relayout::ab, p, product, 0, a.data(), b.data(), workspace.data());
  const RelayoutArgs second = copies_of_panel(Relayout::ab, p, product, 1, a.data(), b.data(), workspace.data());
  EXPECT_EQ(first.a.rows, 4096);
  EXPECT_EQ(first.a.tiles, 64 * 64);
  EXPECT_EQ(second.a.tiles, 0);
  EXPECT_EQ(first.b.from, b.data());
  EXPECT_EQ(second.b.from, b.data() + 2048 * 4096);
  EXPECT_EQ(second.b.to, workspace.data() + 4096 * 4096);
  EXPECT_EQ(second.b.rows, 2048);
  EXPECT_EQ(first.b.to_ld, product.panel.ldb);
}

TEST(Relayout, WorkspaceHoldsCopiesAndPartialTiles) {
  const DeviceInfo device = make_emulated_device()->info();
  const Problem p = packed_problem(301, 200, 1000, Op::T, Op::N);
  const KernelConfig& config = kConfigs[0];
  const Choice split{config, 4, Reduction::ticket, Relayout::ab};
  const int64_t copies = (320 + 224) * 1000 * 4, partials = workspace_bytes(without_relayout(split), p, device.sm_count);
  EXPECT_GT(partials, 0);
  EXPECT_EQ(workspace_bytes(split, p, device.sm_count), copies + partials);
  EXPECT_EQ(why_illegal(split, p, device, copies + partials), "");
  EXPECT_NE(why_illegal(split, p, device, copies + partials - 1).find("workspace"), std::string::npos);
  EXPECT_NE(why_illegal({config, 1, Reduction::ticket, Relayout::a}, p, device, 1000).find("workspace"), std::string::npos);
}

// Operands that are named on the GPU stay where they are.
TEST(Relayout, IsLeftOutForPointersOnTheGpu) {
  const std::unique_ptr<Device> device = make_emulated_device();
  const Problem p = packed_problem(64, 64, 64, Op::T, Op::N);
  Operands operands;
  operands.indirect.scalars = true;
  const Choice choice{kConfigs[0], 1, Reduction::ticket, Relayout::ab};
  const TilePlan plan = build_plan(*device, choice, p, operands).value_or_throw();
  EXPECT_EQ(plan.relaid, nullptr);
  EXPECT_EQ(plan.variant, variant_of(choice, p, operands));
  EXPECT_EQ(plan.variant.op_a, Op::T);
}

TEST(Relayout, IsTriedWhereOperandsAreReadSlowly) {
  const DeviceInfo device = make_emulated_device()->info();
  EXPECT_EQ(relayouts_of(packed_problem(4096, 4096, 4096, Op::N, Op::T), device), std::vector<Relayout>{});
  EXPECT_EQ(relayouts_of(packed_problem(4096, 4096, 4096, Op::N, Op::N), device), std::vector{Relayout::b});
  EXPECT_EQ(relayouts_of(packed_problem(4096, 4096, 4096, Op::T, Op::N), device),
            (std::vector{Relayout::a, Relayout::b, Relayout::ab}));
  EXPECT_EQ(relayouts_of(packed_problem(2049, 2049, 2049, Op::N, Op::T), device),
            (std::vector{Relayout::a, Relayout::b, Relayout::ab}));
  EXPECT_EQ(relayouts_of(packed_problem(64, 64, 64, Op::T, Op::N), device), std::vector<Relayout>{}) << "too short";
}

TEST(Relayout, CostsOnePassOverMemory) {
  const DeviceInfo device = make_emulated_device()->info();
  const Problem p = packed_problem(4096, 4096, 4096, Op::T, Op::N);
  EXPECT_EQ(relayout_us(device, Relayout::none, p), 0);
  const double a = relayout_us(device, Relayout::a, p), ab = relayout_us(device, Relayout::ab, p);
  EXPECT_GT(a, 2.0 * 64 * 1.048576 / 4.8) << "no faster than the memory of an H200";
  EXPECT_LT(a, 100);
  EXPECT_NEAR(ab, 2 * a, 0.05 * ab);
  const auto best = best_on_copies(kConfigs[0], Relayout::ab, p, device, kWorkspaceBytes);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->choice.relayout, Relayout::ab);
  EXPECT_NEAR(best->us, predicted_us(device, best->choice, p), 1e-6 * best->us);
}

TEST(Relayout, NamesReadBack) {
  for (const Relayout relayout : {Relayout::none, Relayout::a, Relayout::b, Relayout::ab}) {
    Relayout read{};
    EXPECT_TRUE(from_string(to_string(relayout), read));
    EXPECT_EQ(read, relayout);
  }
  Relayout unread{};
  EXPECT_FALSE(from_string("ba", unread));
}

}  // namespace
}  // namespace gemm
