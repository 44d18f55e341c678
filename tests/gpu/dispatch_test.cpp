// The shared dispatch suite on GPU 0, and what only a GPU can show: grid limits, cuBLAS, streams.
#include <gtest/gtest.h>

#include "dispatch_suite.h"
#include "gemm/gemm.hpp"

namespace gemm::test {

gemm_context_t* make_test_context(std::string* why_not) {
  if (cuda_device_count(why_not) == 0) {
    *why_not = "no GPU: " + *why_not;
    return nullptr;
  }
  ContextOptions options;
  options.find_table = false;
  return make_context(open_cuda_device(0).value_or_throw(), options);
}

namespace {

class GpuDispatch : public DispatchSuite {};

TEST_F(GpuDispatch, BatchesBeyondTheGridLimit) {
  for (const int64_t batch : {65535, 65536})
    EXPECT_EQ(check_case(context_, {packed_problem(16, 16, 8, Op::N, Op::N, batch), 1, 0, Inputs::ones}), "") << batch;
}

TEST_F(GpuDispatch, SplitBatchesBeyondTheTickets) {
  const Problem p = packed_problem(8, 8, 128, Op::T, Op::N, kMaxTickets + 1);
  ASSERT_EQ(gemm_set_workspace(context_, nullptr, size_t{1} << 30), GEMM_SUCCESS);
  for (const Reduction reduction : {Reduction::ticket, Reduction::kernel}) {
    force(context_, {emulated_configs()[4], 2, reduction}, {p});
    EXPECT_NE(explanation(context_, p).find("exact"), std::string::npos) << explanation(context_, p);
    EXPECT_EQ(check_case(context_, {p, 1, 0, Inputs::ones}), "");
  }
}

TEST_F(GpuDispatch, MoreTilesThanAGridDimensionAllows) {
  const KernelConfig config = default_configs().back();
  for (const Problem& p :
       {packed_problem(8, int64_t{65535} * config.BN + 1, 8), packed_problem(int64_t{65535} * config.BM + 1, 8, 8)}) {
    force(context_, {config, 1, Reduction::ticket}, {p});
    EXPECT_EQ(check_case(context_, {p, 1, 0, Inputs::ones}), "") << p;
  }
}

TEST_F(GpuDispatch, SizesBeyond32BitsGoToCublas) {
  const Problem p = packed_problem((int64_t{1} << 31) + 5, 1, 1);
  const int64_t bytes = 4 * p.m;
  if (device().free_bytes() < 2 * bytes + (int64_t{1} << 30)) GTEST_SKIP() << "needs 17 GB of GPU memory";
  const Buffer a = device().allocate(static_cast<size_t>(bytes)).value_or_throw();
  const Buffer c = device().allocate(static_cast<size_t>(bytes)).value_or_throw();
  const Buffer b = device().allocate(4).value_or_throw();
  device().set_words(a.as(), bits(3.0f), static_cast<size_t>(p.m), nullptr);
  device().set_words(b.as(), bits(2.0f), 1, nullptr);
  ASSERT_EQ(call(context_, {p}, a.as<float>(), b.as<float>(), c.as<float>()), GEMM_SUCCESS) << gemm_last_error();
  device().synchronize(nullptr);
  float last = 0;
  device().copy_to_host(&last, c.as<float>() + p.m - 1, 4);
  EXPECT_EQ(last, 6);
}

TEST_F(GpuDispatch, ACublasPointUsesCublas) {
  const TemporaryFolder folder;
  const Problem p = packed_problem(65, 64, 33, Op::T, Op::N), batched = packed_problem(9, 8, 7, Op::N, Op::T, 3);
  Table table = table_of(device().info(), {emulated_configs().front(), 1, Reduction::ticket}, {p, batched});
  for (TablePoint& point : table.points) point.use_cublas = true;
  save_table(table, folder.file("table.json")).value_or_throw();
  ASSERT_EQ(gemm_load_table(context_, folder.file("table.json").c_str()), GEMM_SUCCESS);
  EXPECT_NE(explanation(context_, p).find("kernel     cuBLAS"), std::string::npos) << explanation(context_, p);
  EXPECT_EQ(check_case(context_, {p, 1, 0.5f}), "");
  EXPECT_EQ(check_case(context_, {batched, -1, 1}), "");
}

// The answer to an empty or refused problem is cuBLAS's answer.
TEST_F(GpuDispatch, ScalingAgreesWithCublas) {
  const Result<std::unique_ptr<Cublas>> cublas = Cublas::open(device());
  if (!cublas) GTEST_SKIP() << cublas.error();
  for (const ApiCase& c : {ApiCase{packed_problem(33, 7, 5), 0, 0.5f}, ApiCase{packed_problem(33, 7, 5), 0, 0}}) {
    const HostMatrix before = c_before(c);
    GuardedC ours(device(), before, 64, 0), theirs(device(), before, 64, 0);
    const Buffer nan = device().allocate(4 * 64).value_or_throw();
    device().set_words(nan.as(), bits(kNan), 64, nullptr);
    ASSERT_EQ(call(context_, c, nan.as<float>(), nan.as<float>(), ours.data()), GEMM_SUCCESS) << gemm_last_error();
    const Operands operands{nan.as<float>(), nan.as<float>(), theirs.data(), c.alpha, c.beta};
    (*cublas)->sgemm(c.problem, operands, nullptr, {}).value_or_throw();
    HostMatrix a = before, b = before;
    EXPECT_EQ(ours.read(a), "");
    EXPECT_EQ(theirs.read(b), "");
    EXPECT_EQ(a.data, b.data);
  }
}

TEST_F(GpuDispatch, CreateFindsATableOrServesWithoutOne) {
  Handle handle(0);
  EXPECT_EQ(check_case(handle.get(), {packed_problem(100, 101, 102), 1, 0.5f}), "");
}

}  // namespace
}  // namespace gemm::test
