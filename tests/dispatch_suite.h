// The dispatch tests that run on any device; the emulated and the GPU test files instantiate them with make_test_context().
#pragma once

#include <gtest/gtest.h>

#include <thread>

#include "dispatch_cases.h"
#include "emulator/emulated_configs.h"

namespace gemm::test {

// A context without a table, or null with a reason in *why_not where this machine has no such device.
gemm_context_t* make_test_context(std::string* why_not);

class DispatchSuite : public testing::Test {
 protected:
  void SetUp() override {
    std::string why_not;
    context_ = make_test_context(&why_not);
    if (!context_) GTEST_SKIP() << why_not;
  }
  void TearDown() override { EXPECT_EQ(gemm_destroy(context_), GEMM_SUCCESS); }

  void check_all(const std::vector<ApiCase>& cases) {
    for (const ApiCase& c : cases) EXPECT_EQ(check_case(context_, c), "") << c;
  }
  Device& device() { return context_->context.device(); }
  gemm_statistics_t counted() {
    gemm_statistics_t statistics{};
    EXPECT_EQ(gemm_get_statistics(context_, &statistics), GEMM_SUCCESS);
    return statistics;
  }

  gemm_context_t* context_ = nullptr;
};

TEST_F(DispatchSuite, BetaZeroNeverReadsC) { check_all(beta_zero_cases()); }
TEST_F(DispatchSuite, AlphaZeroNeverReadsAOrB) { check_all(alpha_zero_cases()); }
TEST_F(DispatchSuite, KZeroScalesC) { check_all(k_zero_cases()); }
TEST_F(DispatchSuite, SmallAndOddSizes) { check_all(small_and_odd_cases()); }
TEST_F(DispatchSuite, Alignment) { check_all(alignment_cases()); }
TEST_F(DispatchSuite, Bounds) { check_all(bounds_cases()); }
TEST_F(DispatchSuite, OneContextManyLayouts) { check_all(key_cases()); }

TEST_F(DispatchSuite, ScalarsAndPointersOnTheDevice) {
  check_all(found_on_the_device(beta_zero_cases()));
  check_all(found_on_the_device(alpha_zero_cases()));
  check_all(found_on_the_device(k_zero_cases()));
  check_all(found_on_the_device(alignment_cases()));
  check_all(found_on_the_device(bounds_cases()));
}

// The kernels of every family and load path that take pointers on the device.
TEST_F(DispatchSuite, EveryFamilyFindsScalarsAndPointersOnTheDevice) {
  for (const KernelConfig& config : emulated_indirect_configs())
    for (const Op op_a : {Op::N, Op::T})
      for (const Op op_b : {Op::N, Op::T}) {
        const int64_t m = config.family == Family::batch ? 12 : 36, n = config.family == Family::batch ? 16 : 8;
        force(context_, {config, 1, Reduction::ticket}, {packed_problem(m, n, 21, op_a, op_b, 3)});
        for (const ApiCase& c : indirect_kernel_cases(m, n, 21, op_a, op_b)) {
          EXPECT_EQ(check_case(context_, c), "") << config_id(config) << " " << c;
          EXPECT_NE(explanation(context_, c.problem).find(config_id(config)), std::string::npos);
        }
      }
}

TEST_F(DispatchSuite, SplitProductsFindScalarsAndPointersOnTheDevice) {
  const Problem p = packed_problem(36, 33, 100, Op::T, Op::N, 2);
  for (const Reduction reduction : {Reduction::ticket, Reduction::kernel}) {
    force(context_, {default_configs().back(), 4, reduction}, {p});
    check_all(found_on_the_device({{p, 0.5f, 2},
                                   {p, 1, 0},
                                   {p, 0, 2, Inputs::nan},
                                   {p, 0, 0, Inputs::nan},
                                   {p, 1, 1, Inputs::random, kNan, 1, 1, 1}}));
    const gemm_statistics_t statistics = counted();
    EXPECT_EQ(statistics.exact, 2u * 13);
    EXPECT_EQ(statistics.scaled, 2u * 2) << "alpha 0 on the host, with pointer arrays";
    gemm_reset_statistics(context_);
  }
}

TEST_F(DispatchSuite, NanDoesNotLeakThroughTheKTail) {
  for (const int64_t k : {31, 33, 47, 63, 65, 97, 127, 129}) EXPECT_EQ(check_nan_leak(context_, k), "") << k;
}

TEST_F(DispatchSuite, BetaZeroNeverReadsCWhereKIsSplit) {
  const KernelConfig config = emulated_configs().front();
  for (const Reduction reduction : {Reduction::ticket, Reduction::kernel}) {
    const Problem p = packed_problem(65, 60, 1024);
    force(context_, {config, 5, reduction}, {p});
    EXPECT_EQ(check_case(context_, {p, 1, 0}), "");
    EXPECT_EQ(check_case(context_, {p, 0.5f, -0.0f, Inputs::random, kInf}), "");
    EXPECT_EQ(check_case(context_, {p, 0.5f, 2}), "");
    EXPECT_NE(explanation(context_, p).find(to_string(reduction)), std::string::npos);
  }
}

// The products of a table's point with relayout: padded and misaligned operands, batches that share a matrix, scalars.
TEST_F(DispatchSuite, OperandsAreCopiedWhereTheTableSaysSo) {
  const KernelConfig config = emulated_configs()[8];
  for (const Relayout relayout : {Relayout::a, Relayout::b, Relayout::ab})
    for (const Reduction reduction : {Reduction::ticket, Reduction::kernel}) {
      const Problem p = packed_problem(65, 61, 203, Op::T, Op::N), batched = packed_problem(65, 61, 203, Op::T, Op::N, 3);
      force(context_, {config, 2, reduction, relayout}, {p, batched});
      EXPECT_NE(explanation(context_, p).find(std::string("relayout   ") + to_string(relayout)), std::string::npos)
          << explanation(context_, p);
      Problem padded = p, shared = batched;
      padded.lda += 5, padded.ldb += 1, padded.ldc += 2;
      shared.stride_b = 0;
      check_all({{p, 1, 0},
                 {p, -0.5f, 2},
                 {p, 0, 2, Inputs::nan},
                 {padded, 1, 1},
                 {padded, 0.5f, 1, Inputs::random, kNan, 1, 2, 3},
                 {batched, 1, 0.5f},
                 {shared, 1, 0}});
      check_all(found_on_the_device({{p, 0.5f, 2}, {batched, 1, 0}}));
    }
}

// All ones: C equals k exactly, for every depth of the ring and every split.
TEST_F(DispatchSuite, NoKTailIsDropped) {
  std::vector<Problem> problems;
  for (const int64_t k : {1, 3, 8, 9, 15, 17, 200, 1024, 1025, 1152})
    problems.push_back(packed_problem(9, 10, k, Op::N, Op::T));
  std::vector<int> depths_seen;
  for (const KernelConfig& config : emulated_configs()) {
    if (std::count(depths_seen.begin(), depths_seen.end(), config.stages)) continue;
    depths_seen.push_back(config.stages);
    for (int split = 1; split <= 8; ++split) {
      force(context_, {config, split, Reduction::ticket}, problems);
      for (const Problem& p : problems)
        EXPECT_EQ(check_case(context_, {p, 1, 0, Inputs::ones}), "") << p << " " << to_string(Choice{config, split, {}});
    }
  }
  EXPECT_GE(depths_seen.size(), 3u);
}

TEST_F(DispatchSuite, LargestTileServesTheSmallestProblem) {
  const Problem p = packed_problem(4, 4, 4);
  for (int i = 0; i < kEmulatedConfigCount; ++i) {
    if (!is_compiled(i)) continue;
    const KernelConfig& config = kEmulatedConfigs[i];
    force(context_, {config, 1, Reduction::ticket}, {p});
    EXPECT_EQ(check_case(context_, {p, 1, 0.5f}), "") << config_id(config);
    EXPECT_NE(explanation(context_, p).find(config_id(config)), std::string::npos);
  }
}

TEST_F(DispatchSuite, EmptyProblemsSucceedAndTouchNothing) {
  const float one = 1;
  const struct {
    int64_t m, n, k, ldc, batch;
  } cases[] = {{0, 4, 4, 0, 1}, {0, 4, 4, 1, 1}, {4, 0, 4, 4, 1}, {0, 0, 0, 0, 1}, {4, 4, 4, 4, 0}, {4, 4, 0, 4, 0}};
  for (const auto& c : cases)
    EXPECT_EQ(gemm_sgemm_strided_batched(context_, nullptr, GEMM_OP_N, GEMM_OP_N, c.m, c.n, c.k, &one, nullptr, 4, 16,
                                         nullptr, 4, 16, &one, nullptr, c.ldc, 16, c.batch),
              GEMM_SUCCESS)
        << c.m << "x" << c.n << "x" << c.k << " batch " << c.batch << ": " << gemm_last_error();
  EXPECT_EQ(check_case(context_, {packed_problem(4, 4, 4)}), "") << "an error from an empty problem has stuck";
}

TEST_F(DispatchSuite, WrongArgumentsAreRefusedAndMemoryIsUntouched) {
  const Problem good = packed_problem(600, 500, 500);
  const auto changed = [&](auto change) {
    Problem p = good;
    change(p);
    return p;
  };
  const std::vector<std::pair<Problem, std::string>> cases = {
      {changed([](Problem& p) { p.lda = 500; }), "lda"},
      {changed([](Problem& p) { p.lda = 0; }), "lda"},
      {changed([](Problem& p) { p.ldb = 1; }), "ldb"},
      {changed([](Problem& p) { p.ldc = 0; }), "ldc"},
      {changed([](Problem& p) { p.ldc = -600; }), "ldc"},
      {changed([](Problem& p) { p.op_a = Op::T, p.lda = 499; }), "lda"},
      {changed([](Problem& p) { p.m = -1; }), "negative"},
      {changed([](Problem& p) { p.k = std::numeric_limits<int64_t>::min(); }), "negative"},
      {changed([](Problem& p) { p.batch = -1; }), "batch"},
      {changed([](Problem& p) { p.batch = 2, p.stride_c = -1; }), "stride"},
  };
  const HostMatrix before{std::vector<float>(600 * 500, 7.0f), 600, 0};
  GuardedC out(device(), before, 64, 0);
  for (const auto& [problem, word] : cases) {
    EXPECT_EQ(call(context_, {problem}, out.data(), out.data(), out.data()), GEMM_INVALID_ARGUMENT) << problem;
    EXPECT_NE(std::string(gemm_last_error()).find(word), std::string::npos) << gemm_last_error();
  }
  HostMatrix after = before;
  EXPECT_EQ(out.read(after), "");
  EXPECT_EQ(after.data, before.data);
}

TEST_F(DispatchSuite, NullAndMisalignedPointersAreRefused) {
  const ApiCase c{packed_problem(4, 4, 4)};
  const Buffer memory = device().allocate(256).value_or_throw();
  float* good = memory.as<float>();
  float* odd = reinterpret_cast<float*>(memory.as<char>() + 2);
  EXPECT_EQ(call(context_, c, nullptr, good, good), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(call(context_, c, good, nullptr, good), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(call(context_, c, good, good, nullptr), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(call(context_, c, odd, good, good), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(call(context_, c, good, good, odd), GEMM_INVALID_ARGUMENT);
}

TEST_F(DispatchSuite, WrongIndirectArgumentsAreRefused) {
  const gemm_problem_t problem = c_problem(packed_problem(4, 4, 4, Op::N, Op::N, 2));
  const Buffer memory = device().allocate(256).value_or_throw();
  const float* good = memory.as<float>();
  const auto* odd = reinterpret_cast<const float*>(memory.as<char>() + 2);
  const auto scalars = [&](const float* alpha, const float* beta, const float* a, gemm_scalars_t place) {
    return gemm_sgemm_ex(context_, nullptr, &problem, place, alpha, a, good, beta, memory.as<float>());
  };
  EXPECT_EQ(scalars(odd, good, good, GEMM_SCALARS_DEVICE), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(scalars(good, odd, good, GEMM_SCALARS_DEVICE), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(scalars(nullptr, good, good, GEMM_SCALARS_DEVICE), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(scalars(good, good, nullptr, GEMM_SCALARS_DEVICE), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(scalars(good, good, good, static_cast<gemm_scalars_t>(2)), GEMM_INVALID_ARGUMENT);
  const float one = 1;
  const auto arrays = [&](const void* a, const void* c) {
    return gemm_sgemm_batched_ex(context_, nullptr, &problem, GEMM_SCALARS_HOST, &one, static_cast<const float* const*>(a),
                                 memory.as<const float*>(), &one, static_cast<float* const*>(const_cast<void*>(c)));
  };
  EXPECT_EQ(arrays(nullptr, memory.as()), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(arrays(memory.as(), nullptr), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(arrays(memory.as<char>() + 4, memory.as()), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(gemm_sgemm_ex(context_, nullptr, nullptr, GEMM_SCALARS_HOST, &one, good, good, &one, memory.as<float>()),
            GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(gemm_prepare_ex(context_, nullptr, &problem, GEMM_SCALARS_DEVICE, 1, nullptr, nullptr, nullptr), GEMM_SUCCESS);
  EXPECT_EQ(gemm_get_statistics(context_, nullptr), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(gemm_get_policy(context_, nullptr), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(gemm_release_stream(nullptr, nullptr), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(gemm_release_stream(context_, nullptr), GEMM_SUCCESS);
}

TEST_F(DispatchSuite, ThreadsShareAContext) {
  // Split and unsplit problems, so that the threads meet in the plans, the workspace and the tickets.
  const Problem split = packed_problem(40, 40, 256);
  force(context_, {emulated_configs().front(), 4, Reduction::kernel}, {split});
  std::vector<std::string> wrong(3);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 2 && wrong[t].empty(); ++round) {
        wrong[t] = check_case(context_, {split, 1, static_cast<float>(t)});
        if (wrong[t].empty()) wrong[t] = check_case(context_, {packed_problem(33 + round, 20, 16)});
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& why : wrong) EXPECT_EQ(why, "");
}

TEST_F(DispatchSuite, WorkspaceDecidesWhetherKIsSplit) {
  const Problem p = packed_problem(32, 32, 512);
  force(context_, {emulated_configs().front(), 4, Reduction::ticket}, {p});
  const gemm_problem_t problem = c_problem(p);
  size_t needed = 0, size = 0;
  ASSERT_EQ(gemm_workspace_size(context_, &problem, &needed), GEMM_SUCCESS);
  EXPECT_EQ(needed, 4u * 64 * 64 * 4);
  ASSERT_EQ(gemm_get_workspace_size(context_, &size), GEMM_SUCCESS);
  EXPECT_EQ(size, static_cast<size_t>(kWorkspaceBytes));
  EXPECT_NE(explanation(context_, p).find("exact"), std::string::npos);
  EXPECT_EQ(check_case(context_, {p}), "");

  ASSERT_EQ(gemm_set_workspace(context_, nullptr, 0), GEMM_SUCCESS);
  EXPECT_NE(explanation(context_, p).find("default"), std::string::npos);
  EXPECT_NE(explanation(context_, p).find("bytes of workspace"), std::string::npos) << "the reason is missing";
  EXPECT_EQ(check_case(context_, {p}), "");

  const Buffer own = device().allocate(needed).value_or_throw();
  EXPECT_EQ(gemm_set_workspace(context_, own.as<char>() + 4, needed - 4), GEMM_INVALID_ARGUMENT);
  ASSERT_EQ(gemm_set_workspace(context_, own.as(), needed), GEMM_SUCCESS);
  EXPECT_NE(explanation(context_, p).find("exact"), std::string::npos);
  EXPECT_EQ(check_case(context_, {p}), "");
}

TEST_F(DispatchSuite, PrepareDoesAllButTheProduct) {
  const gemm_problem_t problem = c_problem(packed_problem(64, 64, 64));
  EXPECT_EQ(gemm_prepare(context_, nullptr, &problem, nullptr, nullptr, nullptr), GEMM_SUCCESS) << gemm_last_error();
  const gemm_problem_t empty = c_problem(packed_problem(0, 64, 64));
  EXPECT_EQ(gemm_prepare(context_, nullptr, &empty, nullptr, nullptr, nullptr), GEMM_SUCCESS);
  gemm_problem_t bad = problem;
  bad.lda = 1;
  EXPECT_EQ(gemm_prepare(context_, nullptr, &bad, nullptr, nullptr, nullptr), GEMM_INVALID_ARGUMENT);
}

}  // namespace gemm::test
