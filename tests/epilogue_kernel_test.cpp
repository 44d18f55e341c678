// Bias and ReLU in every kernel that can end a product: each family, and each way in which a tile's sum comes together.
#include <gtest/gtest.h>

#include "emulator/emulated_batch_configs.h"
#include "emulator/emulated_configs.h"
#include "emulator/emulated_device.h"
#include "emulator/emulated_stream_configs.h"
#include "epilogue_cases.h"
#include "scripted_device.h"

namespace gemm {
namespace {

using test::epilogue_cases;

constexpr Epilogue kAllEpilogues[] = {Epilogue::bias, Epilogue::relu, Epilogue::bias_relu};

std::vector<KernelConfig> configs() {
  std::vector<KernelConfig> all;
  for (const KernelConfig& config : emulated_configs())
    if (emulated_with_epilogue(config)) all.push_back(config);
  for (int i = 0; i < kEmulatedStreamConfigCount; ++i)
    if (emulated_stream_with_epilogue(i)) all.push_back(kEmulatedStreamConfigs[i]);
  return all;
}

class EpilogueKernel : public testing::TestWithParam<int> {
 protected:
  KernelConfig config() const { return configs()[static_cast<size_t>(GetParam())]; }

  void expect_all(const Choice& choice, Epilogue epilogue = Epilogue::bias_relu) {
    for (const Op op_a : test::kOps) test::expect_right(*device_, epilogue_cases(choice, op_a, Op::N, epilogue));
  }

  std::unique_ptr<Device> device_ = make_emulated_device();
};

TEST_P(EpilogueKernel, WholeSums) { expect_all({config(), 1, Reduction::ticket}); }

TEST_P(EpilogueKernel, SplitsAreFinishedOnce) {
  for (const Reduction reduction : {Reduction::ticket, Reduction::kernel}) expect_all({config(), 3, reduction});
}

TEST_P(EpilogueKernel, ClustersAreFinishedOnce) {
  if (emulated_in_cluster(config())) expect_all({config(), 3, Reduction::cluster});
}

// On few multiprocessors blocks have several items, and both whole tiles and shared ones.
TEST_P(EpilogueKernel, PersistentBlocksAndStreamK) {
  if (!is_specialized(config().load)) return;
  for (const int sm_count : {2, 132}) {
    EmulatorOptions options = default_emulator_options();
    options.info.sm_count = sm_count;
    device_ = make_emulated_device(options);
    for (const Reduction reduction : {Reduction::ticket, Reduction::stream_k}) expect_all({config(), 1, reduction});
  }
}

TEST_P(EpilogueKernel, BiasAloneAndReluAlone) {
  if (!emulated_with_all_epilogues(config())) return;
  for (const Epilogue epilogue : kAllEpilogues)
    for (const int split : {1, 3}) expect_all({config(), split, Reduction::kernel}, epilogue);
}

TEST_P(EpilogueKernel, ProductsOnCopies) {
  if (config().load != LoadPath::tma) return;
  test::ProductCase c{{config(), 2, Reduction::ticket, Relayout::ab}, packed_problem(65, 61, 203, Op::T, Op::N), 1, 0.5f};
  c.epilogue = Epilogue::bias_relu;
  test::expect_right(*device_, {c});
}

// ReLU keeps NaN, so that it is seen; a bias of NaN stays in its row.
TEST_P(EpilogueKernel, NanIsNotHidden) {
  const Problem p = test::aligned_problem(8, 8, 16, Op::N, Op::N);
  std::vector<float> a(8 * 16, 1), b(16 * 8, -1), c(64, 0), bias(8, 3);
  bias[5] = std::numeric_limits<float>::quiet_NaN();
  const Operands operands{a.data(), b.data(), c.data(), 1, 0, {}, Epilogue::bias_relu, {bias.data(), 0}};
  const TilePlan plan = build_plan(*device_, {config(), 1, Reduction::ticket}, p, operands).value_or_throw();
  ASSERT_TRUE(launch_plan(*device_, plan, p, operands, nullptr, nullptr, nullptr).ok());
  for (size_t i = 0; i < c.size(); ++i)
    EXPECT_TRUE(i % 8 == 5 ? std::isnan(c[i]) : c[i] == 0) << config_id(config()) << " " << i << ": " << c[i];
}

INSTANTIATE_TEST_SUITE_P(EmulatedConfigs, EpilogueKernel, testing::Range(0, static_cast<int>(configs().size())),
                         [](const auto& info) { return config_id(configs()[static_cast<size_t>(info.param)]); });

TEST(EpilogueBatchKernel, BothWaysToC) {
  const std::unique_ptr<Device> device = make_emulated_device();
  for (size_t i = 0; i < emulated_batch_configs().size(); ++i)
    for (const Op op_a : test::kOps)
      if (emulated_batch_with_epilogue(static_cast<int>(i)))
        test::expect_right(*device, epilogue_cases({emulated_batch_configs()[i]}, op_a, Op::N, Epilogue::bias_relu));
}

// Where the bias of each product's launch lies, from `origin` on.
std::vector<int64_t> bias_offsets(test::ScriptedDevice& device, const float* origin) {
  std::vector<int64_t> offsets;
  for (const auto& launch : device.launches())
    if (launch.args.c) offsets.push_back(launch.args.bias.data - origin);
  return offsets;
}

// Batches that take several launches, and panels of copies along m: each begins with its own part of the bias.
TEST(EpilogueLaunch, EachPartGetsItsBias) {
  float* const memory = reinterpret_cast<float*>(0x100000);
  const KernelConfig config = emulated_configs()[8];
  Operands o{memory, memory, memory, 1, 0, {}, Epilogue::bias_relu, {memory, 1000}};
  test::ScriptedDevice batches(false), panels(false);
  Problem p = packed_problem(8, 8, 16, Op::N, Op::N, 65540);
  TilePlan plan = build_plan(batches, {config, 1, Reduction::ticket}, p, o).value_or_throw();
  EXPECT_TRUE(launch_plan(batches, plan, p, o, memory, nullptr, nullptr).ok());
  EXPECT_EQ(bias_offsets(batches, memory), (std::vector<int64_t>{0, 65535 * 1000}));

  o.bias.stride = 0;
  p = packed_problem(24001, 512, 2816, Op::T, Op::N);
  plan = build_plan(panels, {config, 1, Reduction::ticket, Relayout::ab}, p, o).value_or_throw();
  ASSERT_TRUE(plan.relaid && plan.relaid->product.along_m && plan.relaid->product.panels == 3);
  EXPECT_TRUE(launch_plan(panels, plan, p, o, memory, nullptr, nullptr).ok());
  const int64_t rows = plan.relaid->product.panel.m;
  EXPECT_EQ(bias_offsets(panels, memory), (std::vector<int64_t>{0, rows, 2 * rows}));
}

// Only kernels with an epilogue know the word: the source of all others, by which caches and bundles find them, is as ever.
TEST(EpilogueSpec, NamesItOnlyWhereThereIsOne) {
  KernelVariant v{emulated_configs()[2], Op::T, Op::N};
  const KernelSpec plain = variant_spec(v);
  EXPECT_EQ(plain.function.find("Epilogue"), std::string::npos);
  EXPECT_TRUE(plain.name.ends_with("_tn_v44")) << plain.name;
  EXPECT_TRUE(plain.function.ends_with("gemm::Op::N, 4, 4, false, false}>")) << plain.function;
  v.epilogue = Epilogue::bias;
  EXPECT_TRUE(variant_spec(v).name.ends_with("_tn_v44_bias"));
  EXPECT_TRUE(variant_spec(v).function.ends_with("4, 4, false, false, false, gemm::Epilogue::bias}>"));
  v.indirect = true;
  EXPECT_TRUE(variant_spec(v).function.ends_with("4, 4, false, false, true, gemm::Epilogue::bias}>"));
  EXPECT_EQ(scale_with_spec(Epilogue::relu).function, "gemm::scale_with<gemm::Epilogue::relu>");
}

}  // namespace
}  // namespace gemm
