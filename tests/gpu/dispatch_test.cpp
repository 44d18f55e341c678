// The shared dispatch suite on GPU 0, and what only a GPU can show: grid limits, cuBLAS, streams.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

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

// What the emulated device computes, with the same kernels, is what every GPU gives.
TEST_F(GpuDispatch, ReproducibleResultsAreThoseOfTheEmulatedDevice) {
  ContextOptions options;
  options.find_table = false;
  const Handle emulated(make_context(make_emulated_device(), options));
  for (gemm_context_t* context : {context_, emulated.get()})
    ASSERT_EQ(gemm_set_policy(context, GEMM_POLICY_REPRODUCIBLE), GEMM_SUCCESS);
  for (const Problem& p : {packed_problem(33, 30, 1600, Op::T, Op::N), packed_problem(270, 260, 41),
                           packed_problem(20, 24, 70, Op::N, Op::T, 2)}) {
    std::vector<std::vector<float>> results;
    for (gemm_context_t* context : {context_, emulated.get()}) {
      Device& on = context->context.device();
      const ApiCase c{p, 0.7f, 1.3f};
      const Buffer a =
          upload(on, random_matrix(p.rows_a(), p.columns_a(), p.lda, p.stride_a, p.batch, p.extent_a(), false, 1), 0);
      const Buffer b =
          upload(on, random_matrix(p.rows_b(), p.columns_b(), p.ldb, p.stride_b, p.batch, p.extent_b(), false, 2), 0);
      GuardedC out(on, c_before(c), 64, 0);
      ASSERT_EQ(call(context, c, a.as<float>(), b.as<float>(), out.data()), GEMM_SUCCESS) << gemm_last_error();
      HostMatrix after = c_before(c);
      EXPECT_EQ(out.read(after), "");
      results.push_back(after.data);
    }
    EXPECT_EQ(results[0], results[1]) << p;
  }
}

TEST_F(GpuDispatch, ThreadsWithStreamsOfTheirOwn) {
  const Problem p = packed_problem(68, 72, 520);
  force(context_, {emulated_configs().front(), 4, Reduction::kernel}, {p});
  const HostMatrix a = random_matrix(p.m, p.k, p.lda, 0, 1, p.extent_a(), false, 1);
  const HostMatrix b = random_matrix(p.k, p.n, p.ldb, 0, 1, p.extent_b(), false, 2);
  const Buffer device_a = upload(device(), a, 0), device_b = upload(device(), b, 0);
  constexpr size_t kThreads = 20;  // more than there are workspaces
  const ApiCase c{p};
  const HostMatrix before = c_before(c);
  std::vector<std::unique_ptr<GuardedC>> outputs;
  for (size_t t = 0; t < kThreads; ++t) outputs.push_back(std::make_unique<GuardedC>(device(), before, 64, 0));
  std::vector<cudaStream_t> streams(kThreads);
  for (cudaStream_t& stream : streams) ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const gemm_problem_t problem = c_problem(p);
      for (int i = 0; i < 100; ++i)
        failures +=
            gemm_sgemm_ex(context_, reinterpret_cast<gemm_stream_t>(streams[t]), &problem, GEMM_SCALARS_HOST, &c.alpha,
                          device_a.as<float>(), device_b.as<float>(), &c.beta, outputs[t]->data()) != GEMM_SUCCESS;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  device().synchronize(nullptr);
  for (const auto& output : outputs) {
    HostMatrix after = before;
    EXPECT_EQ(output->read(after), "");
    EXPECT_EQ(why_wrong({{}, p, 1, 0}, a, b, before, after), "");
  }
  for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
}

TEST_F(GpuDispatch, SeveralGpusInOneProcess) {
  std::string why;
  if (cuda_device_count(&why) < 2) GTEST_SKIP() << "needs two GPUs";
  ContextOptions options;
  options.find_table = false;
  const Handle second(make_context(open_cuda_device(1).value_or_throw(), options));
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  // In turn by one thread, whose current device stays, and side by side.
  for (int round = 0; round < 2; ++round)
    for (gemm_context_t* context : {context_, second.get()})
      EXPECT_EQ(check_case(context, {packed_problem(100, 90, 80, Op::T, Op::N), 1, 0.5f}), "");
  int current = -1;
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 0);
  std::vector<std::string> wrong(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 10 && wrong[t].empty(); ++round)
        wrong[t] = check_case(t % 2 ? context_ : second.get(), {packed_problem(65 + round, 40, 2048), 1, 1});
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : wrong) EXPECT_EQ(text, "");
}

// A plan that was prepared without pointers is the one that aligned pointers get.
TEST_F(GpuDispatch, PrepareWithoutPointersChoosesTensorCopies) {
  const Problem p = packed_problem(64, 64, 64);
  force(context_, {emulated_configs()[8], 1, Reduction::ticket}, {p});
  const gemm_problem_t problem = c_problem(p);
  ASSERT_EQ(gemm_prepare(context_, nullptr, &problem, nullptr, nullptr, nullptr), GEMM_SUCCESS) << gemm_last_error();
  EXPECT_NE(explanation(context_, p).find("rule       exact"), std::string::npos) << explanation(context_, p);
  EXPECT_EQ(check_case(context_, {p, 1, 0.5f}), "");
  EXPECT_EQ(counted().exact, 2u);
}

// The table may say cuBLAS; where alpha is on the device, what it must not read is for our kernels to know.
TEST_F(GpuDispatch, CublasServesPointerArraysAndScalarsOnTheDevice) {
  const std::vector<ApiCase> cases = found_on_the_device({{packed_problem(65, 64, 33, Op::T, Op::N, 3), 1, 0.5f}});
  ASSERT_EQ(gemm_set_policy(context_, GEMM_POLICY_CUBLAS_ONLY), GEMM_SUCCESS);
  check_all(cases);
  check_all(k_zero_cases());
  EXPECT_GT(counted().cublas, 0u);
  EXPECT_EQ(counted().scaled, 0u);
}

TEST_F(GpuDispatch, CreateFindsATableOrServesWithoutOne) {
  Handle handle(0);
  EXPECT_EQ(check_case(handle.get(), {packed_problem(100, 101, 102), 1, 0.5f}), "");
}

}  // namespace
}  // namespace gemm::test
