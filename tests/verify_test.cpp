#include "tuner/verify.h"

#include <gtest/gtest.h>

#include "emulator/emulated_configs.h"
#include "emulator/emulated_device.h"
#include "kernels/kernel_spec.h"
#include "tuner/problem_bench.h"

namespace gemm {
namespace {

struct Bench {
  std::unique_ptr<Device> device;
  std::unique_ptr<BenchContext> context;
  std::unique_ptr<ProblemBench> problem;

  Bench(const Problem& p, std::vector<Fault> faults) {
    EmulatorOptions options = default_emulator_options();
    options.faults = std::move(faults);
    device = make_emulated_device(std::move(options));
    context = BenchContext::create(*device, modelled).value_or_throw();
    problem = ProblemBench::create(*context, p).value_or_throw();
    problem->make_reference().value_or_throw();
  }
  static double modelled(const Choice& choice, const Problem& p) {
    return modelled_time_us(default_emulator_options().info, choice, p);
  }
};

TEST(Verify, EveryEmulatedKernelIsRightOnTheEdges) {
  const std::pair<Op, Op> ops[] = {{Op::N, Op::N}, {Op::T, Op::N}, {Op::N, Op::T}, {Op::T, Op::T}};
  size_t i = 0;
  for (const KernelConfig& config : emulated_configs()) {
    const auto [op_a, op_b] = ops[i++ % 4];
    for (int64_t odd : {0, 1}) {  // 16-byte and 4-byte paths
      Bench bench(packed_problem(20 + odd, 12 + odd, 16 + odd, op_a, op_b), {});
      const TilePlan plan =
          bench.problem->prepare({config, 1, i % 2 ? Reduction::ticket : Reduction::kernel}).value_or_throw();
      const Verdict on_problem = bench.problem->verify(plan);
      EXPECT_EQ(on_problem.reason, "");
      EXPECT_LE(on_problem.max_scaled_error, 1);
      EXPECT_EQ(bench.context->verifier->check_edges(plan, bench.context->scratch).reason, "");
      const int runs = bench.context->verifier->edge_runs();
      EXPECT_GE(runs, 15);
      EXPECT_EQ(bench.context->verifier->check_edges(plan, bench.context->scratch).reason, "");
      EXPECT_EQ(bench.context->verifier->edge_runs(), runs) << "remembered, not repeated";
    }
  }
}

// Whose edges are not those of every tile kernel: stream-k and clusters share k in their own way, and a matrix of the batch
// family is no larger than its tile.
TEST(Verify, EdgesSuitReductionsAndFamilies) {
  std::vector<Choice> choices;
  for (const KernelConfig& config : emulated_configs()) {
    if (is_specialized(config.load)) choices.push_back({config, 1, Reduction::stream_k});
    if (emulated_in_cluster(config)) choices.push_back({config, 2, Reduction::cluster});
  }
  for (const KernelConfig& config : emulated_batch_configs()) choices.push_back({config});
  for (const Choice& choice : choices) {
    Bench bench(packed_problem(8, 8, 140, Op::N, Op::N, 3), {});
    const TilePlan plan = bench.problem->prepare(choice).value_or_throw();
    EXPECT_EQ(bench.problem->verify(plan).reason, "") << to_string(choice);
    EXPECT_EQ(bench.context->verifier->check_edges(plan, bench.context->scratch).reason, "") << to_string(choice);
  }
}

TEST(Verify, FaultyKernelsAreFoundAlsoAfterARightOne) {
  const KernelConfig right = emulated_configs()[2], faulty = emulated_configs()[4];
  ASSERT_NE(config_id(right), config_id(faulty));
  for (FaultKind kind : {FaultKind::writes_nan, FaultKind::skips_last_tile, FaultKind::launch_refused}) {
    Bench bench(packed_problem(70, 40, 24), {{config_id(faulty), kind}});
    EXPECT_TRUE(bench.problem->verify(bench.problem->prepare({right}).value_or_throw()).ok());
    const TilePlan plan = bench.problem->prepare({faulty}).value_or_throw();
    const Verdict verdict = bench.problem->verify(plan);
    EXPECT_FALSE(verdict.ok());
    EXPECT_EQ(verdict.launch_refused, kind == FaultKind::launch_refused) << verdict.reason;
    EXPECT_NE(verdict.reason.find("70x40x24"), std::string::npos) << verdict.reason;
    EXPECT_FALSE(bench.context->verifier->check_edges(plan, bench.context->scratch).ok());
    // A fault leaves nothing behind that fails the next candidate.
    EXPECT_TRUE(bench.problem->verify(bench.problem->prepare({right, 2}).value_or_throw()).ok());
  }
}

TEST(ProblemBench, TimesAreTheModelsOnTheEmulatedDevice) {
  const Problem problem = packed_problem(20, 12, 16);
  Bench bench(problem, {});
  const Choice choice{emulated_configs()[2]};
  const TilePlan plan = bench.problem->prepare(choice).value_or_throw();
  const Comparison comparison = bench.problem->compare({bench.problem->workload(plan)}, {});
  ASSERT_EQ(comparison.own.size(), 1u);
  EXPECT_EQ(comparison.own[0].size(), 3u);
  EXPECT_DOUBLE_EQ(comparison.own[0][0], Bench::modelled(choice, problem));
  EXPECT_TRUE(comparison.cublas.empty());
}

TEST(ProblemBench, RefusesWhatDoesNotFit) {
  Bench bench(packed_problem(4, 4, 4), {});
  const Result<std::unique_ptr<ProblemBench>> large =
      ProblemBench::create(*bench.context, packed_problem(60000, 60000, 60000));
  ASSERT_FALSE(large.ok());
  EXPECT_NE(large.error().find("half of the free memory"), std::string::npos) << large.error();
}

}  // namespace
}  // namespace gemm
