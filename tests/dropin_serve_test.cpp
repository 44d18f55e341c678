// What the drop-in serves, on the emulated device.
#include <cublasLt.h>
#include <gtest/gtest.h>

#include <thread>

#include "dropin_fixture.h"
#include "epilogue_cases.h"

namespace gemm::test {
namespace {

Problem padded(Op op_a, Op op_b) {
  Problem p = packed_problem(33, 17, 29, op_a, op_b);
  p.lda += 3, p.ldb += 1, p.ldc += 5;
  return p;
}

TEST_F(Dropin, ServesSingleProducts) {
  for (const Entry entry : {Entry::sgemm, Entry::sgemm_64, Entry::sgemm_ex, Entry::sgemm_ex_64, Entry::gemm_ex,
                            Entry::gemm_ex_64, Entry::lt_matmul})
    for (const Op op_a : {Op::N, Op::T})
      for (const Op op_b : {Op::N, Op::T}) {
        Request r = request(entry, padded(op_a, op_b));
        EXPECT_EQ(check_served(r), "") << name_of(entry);
        r.beta = 0;
        r.other_c = true;
        if (op_a == Op::T) r.op_a = CUBLAS_OP_C;
        r.compute = CUBLAS_COMPUTE_32F_PEDANTIC;
        r.algorithm = CUBLAS_GEMM_DEFAULT_TENSOR_OP;
        r.settings.math_mode = CUBLAS_PEDANTIC_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
        EXPECT_EQ(check_served(r), "") << name_of(entry);
      }
}

TEST_F(Dropin, ServesStridedBatches) {
  for (const Entry entry : {Entry::sgemm_strided, Entry::sgemm_strided_64, Entry::gemm_strided_ex, Entry::gemm_strided_ex_64,
                            Entry::lt_matmul}) {
    EXPECT_EQ(check_served(request(entry, packed_problem(7, 9, 11, Op::T, Op::N, 3))), "") << name_of(entry);
    // One B for all; a batch of one, whose strides mean nothing.
    EXPECT_EQ(check_served(request(entry, with_strides(packed_problem(8, 8, 8, Op::N, Op::N, 3), 64, 0, 70))), "");
    EXPECT_EQ(check_served(request(entry, with_strides(packed_problem(8, 8, 8), -1, -1, 0))), "") << name_of(entry);
  }
}

TEST_F(Dropin, ServesArraysOfPointers) {
  for (const Entry entry :
       {Entry::sgemm_batched, Entry::sgemm_batched_64, Entry::gemm_batched_ex, Entry::gemm_batched_ex_64}) {
    EXPECT_EQ(check_served(request(entry, packed_problem(7, 9, 11, Op::T, Op::N, 3))), "") << name_of(entry);
    EXPECT_EQ(check_served(request(entry, with_strides(packed_problem(8, 8, 8, Op::N, Op::T, 2), 65, 0, 70))), "");
  }
}

TEST_F(Dropin, ServesScalarsOnTheDevice) {
  for (size_t entry = 0; entry < kEntryNames.size(); ++entry) {
    Request r = request(static_cast<Entry>(entry), packed_problem(9, 10, 11));
    r.settings.pointer_mode = CUBLAS_POINTER_MODE_DEVICE;
    r.operation[CUBLASLT_MATMUL_DESC_POINTER_MODE] = CUBLASLT_POINTER_MODE_DEVICE;
    EXPECT_EQ(check_served(r), "") << kEntryNames[entry];
  }
}

TEST_F(Dropin, ServesBiasAndRelu) {
  for (const Epilogue epilogue : {Epilogue::bias, Epilogue::relu, Epilogue::bias_relu})
    for (const Op op_a : {Op::N, Op::T}) {
      Request r = request(Entry::lt_matmul, aligned_problem(36, 20, 28, op_a, Op::N));
      r.epilogue = epilogue;
      EXPECT_EQ(check_served(r), "") << to_string(epilogue);
      // C is not read; PyTorch passes D or a null pointer there.
      r.beta = 0, r.other_c = true;
      EXPECT_EQ(check_served(r), "") << to_string(epilogue);
      r.operation[CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE] = CUDA_R_32F;
      EXPECT_EQ(check_served(r), "") << to_string(epilogue);
      r.alpha = 0;
      EXPECT_EQ(check_served(r), "") << to_string(epilogue);
    }
  for (const bool shared_bias : {false, true}) {
    Request r = request(Entry::lt_matmul, aligned_problem(12, 9, 16, Op::T, Op::N, 3));
    r.epilogue = Epilogue::bias_relu;
    EXPECT_EQ(check_served(r, shared_bias), "");
    r.operation[CUBLASLT_MATMUL_DESC_POINTER_MODE] = CUBLASLT_POINTER_MODE_DEVICE;
    EXPECT_EQ(check_served(r, shared_bias), "");
  }
}

TEST_F(Dropin, ServesManyThreads) {
  std::vector<std::string> whys(4);
  std::vector<std::thread> threads;
  threads.reserve(whys.size());
  for (std::string& why : whys)
    threads.emplace_back([&why] {
      std::vector<float> a(64, 1), c(64, 7);
      for (int i = 0; i < 20 && why.empty(); ++i) {
        Request r = request(Entry::sgemm, packed_problem(8, 8, 8));
        r.alpha = 1, r.beta = 0;
        if (call(r, a.data(), a.data(), c.data()) != CUBLAS_STATUS_SUCCESS) why = "refused";
        for (const float value : c)
          if (value != 8) why = "wrong";
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& why : whys) EXPECT_EQ(why, "");
  EXPECT_EQ(forwarded_calls(), "");
}

TEST_F(Dropin, OpensEachGpuOnce) {
  int opened = 0;
  dropin::Server server([](Stream stream) { return stream ? 1 : 0; }, [&](int) { return ++opened, context_; });
  dropin::Call product;
  std::vector<float> memory(64);
  const float zero = 0;
  product.problem = packed_problem(4, 4, 4);
  product.alpha = product.beta = &zero;
  product.a = product.b = memory.data();
  product.c = memory.data() + 32;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(server.serve(product, nullptr), Verdict::served);
  EXPECT_EQ(opened, 1);
  EXPECT_EQ(server.serve(product, memory.data()), Verdict::served);
  EXPECT_EQ(opened, 2);
}

}  // namespace
}  // namespace gemm::test
