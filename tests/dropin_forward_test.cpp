// What the drop-in leaves to the real cuBLAS, for which reason, and that it arrives there as it came.
#include <cublasLt.h>
#include <gtest/gtest.h>

#include <new>
#include <set>

#include "dropin_fixture.h"

namespace gemm::test {
namespace {

// Every reason that arguments or the handle give, at the entry points that know it.
struct Reason {
  Verdict verdict;
  std::set<Entry> entries;
  void (*change)(Request&);
};

const std::set<Entry> kBatches = {Entry::sgemm_strided, Entry::sgemm_strided_64, Entry::gemm_strided_ex,
                                  Entry::gemm_strided_ex_64};
const std::set<Entry> kTyped = {Entry::gemm_ex, Entry::gemm_ex_64, Entry::gemm_strided_ex, Entry::gemm_strided_ex_64};
const std::set<Entry> kSized = {
    Entry::sgemm,      Entry::sgemm_64,      Entry::sgemm_ex,         Entry::sgemm_ex_64,     Entry::gemm_ex,
    Entry::gemm_ex_64, Entry::sgemm_strided, Entry::sgemm_strided_64, Entry::gemm_strided_ex, Entry::gemm_strided_ex_64};
const std::set<Entry> kArrays = {Entry::sgemm_batched, Entry::sgemm_batched_64, Entry::gemm_batched_ex,
                                 Entry::gemm_batched_ex_64};
const std::set<Entry> kLt = {Entry::lt_matmul};

void with_bias(Request& r, uint64_t address) {
  r.epilogue = Epilogue::bias;
  r.bias = {reinterpret_cast<const float*>(address), 0};
}

std::vector<Reason> reasons() {
  std::set<Entry> with_lt = kSized, typed_operands = kTyped;
  with_lt.insert(Entry::lt_matmul);
  typed_operands.insert({Entry::sgemm_ex, Entry::sgemm_ex_64});
  const auto unusual = Verdict::unusual;
  return {
      {unusual, kSized, [](Request& r) { r.problem.m = -1; }},
      {unusual, with_lt, [](Request& r) { r.problem.m = 0; }},
      {unusual, with_lt, [](Request& r) { r.problem.k = 0; }},
      {unusual, with_lt, [](Request& r) { r.problem.lda = 4; }},
      {unusual, kSized, [](Request& r) { r.op_b = static_cast<cublasOperation_t>(7); }},
      {unusual, with_lt, [](Request& r) { r.null_handle = true; }},
      {unusual, kSized, [](Request& r) { r.null_alpha = true; }},
      {unusual, with_lt, [](Request& r) { r.problem.ldc = 1; }},
      {unusual, kSized, [](Request& r) { r.null_a = true; }},
      {unusual, kBatches, [](Request& r) { r.problem.batch = 0; }},
      {unusual, kBatches, [](Request& r) { r.problem.batch = 2, r.problem.stride_c = 0; }},
      {unusual, kBatches, [](Request& r) { r.problem.batch = 2, r.problem.stride_b = -1; }},
      {Verdict::reduced_math, kSized, [](Request& r) { r.settings.math_mode = CUBLAS_TF32_TENSOR_OP_MATH; }},
      {Verdict::reduced_math, kSized, [](Request& r) { r.settings.math_mode = CUBLAS_TENSOR_OP_MATH; }},
      {Verdict::reduced_math, kSized, [](Request& r) { r.settings.math_mode = 4; }},
      {Verdict::sm_limit, kSized, [](Request& r) { r.settings.sm_limit = 66; }},
      {Verdict::not_fp32, typed_operands, [](Request& r) { r.type_a = CUDA_R_16F; }},
      {Verdict::not_fp32, kTyped, [](Request& r) { r.compute = CUBLAS_COMPUTE_32F_FAST_TF32; }},
      {Verdict::algorithm, kTyped, [](Request& r) { r.algorithm = CUBLAS_GEMM_ALGO3; }},
      {unusual, kArrays, [](Request& r) { r.null_a = true; }},
      {unusual, kArrays, [](Request& r) { r.problem.batch = 0; }},
      {unusual, kArrays, [](Request& r) { r.problem.lda = 4; }},
      {Verdict::reduced_math, kArrays, [](Request& r) { r.settings.math_mode = CUBLAS_TF32_TENSOR_OP_MATH; }},
      {Verdict::not_fp32, {Entry::gemm_batched_ex, Entry::gemm_batched_ex_64}, [](Request& r) { r.type_a = CUDA_R_16F; }},
      {Verdict::algorithm,
       {Entry::gemm_batched_ex, Entry::gemm_batched_ex_64},
       [](Request& r) { r.algorithm = CUBLAS_GEMM_ALGO3; }},
      {Verdict::not_fp32, kLt, [](Request& r) { r.compute = CUBLAS_COMPUTE_32F_FAST_TF32; }},
      {Verdict::not_fp32, kLt, [](Request& r) { r.layout_a[CUBLASLT_MATRIX_LAYOUT_TYPE] = CUDA_R_16F; }},
      {Verdict::not_fp32, kLt, [](Request& r) { r.operation[CUBLASLT_MATMUL_DESC_SCALE_TYPE] = CUDA_R_16F; }},
      {Verdict::epilogue, kLt, [](Request& r) { r.operation[CUBLASLT_MATMUL_DESC_EPILOGUE] = CUBLASLT_EPILOGUE_GELU_BIAS; }},
      {Verdict::epilogue, kLt, [](Request& r) { r.operation[CUBLASLT_MATMUL_DESC_EPILOGUE] = CUBLASLT_EPILOGUE_RELU_AUX; }},
      {Verdict::epilogue, kLt, [](Request& r) { r.operation[CUBLASLT_MATMUL_DESC_EPILOGUE] = CUBLASLT_EPILOGUE_BGRADA; }},
      {Verdict::epilogue, kLt,
       [](Request& r) {
         with_bias(r, 4096);
         r.operation[CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE] = CUDA_R_16BF;
       }},
      {Verdict::epilogue, kLt, [](Request& r) { with_bias(r, 0); }},
      {Verdict::epilogue, kLt, [](Request& r) { with_bias(r, 4098); }},
      {Verdict::epilogue, kLt,
       [](Request& r) {
         with_bias(r, 4096);
         r.bias.stride = -1;
       }},
      // No kernel of ours with an epilogue can be had for this: the emulator has none.
      {Verdict::cublas_chosen, kLt,
       [](Request& r) {
         r = request(Entry::lt_matmul, packed_problem(8, 8, 8, Op::T, Op::T));
         with_bias(r, 4096);
       }},
      {Verdict::epilogue, kLt, [](Request& r) { r.operation[CUBLASLT_MATMUL_DESC_D_SCALE_POINTER] = 4096; }},
      {Verdict::scalar_vectors, kLt, [](Request& r) { r.operation[CUBLASLT_MATMUL_DESC_POINTER_MODE] = 2; }},
      {Verdict::layout, kLt,
       [](Request& r) {
         r.operation[CUBLASLT_MATMUL_DESC_POINTER_MODE] = 1;
         r.beta = 0, r.other_c = true;
       }},
      {Verdict::sm_limit, kLt, [](Request& r) { r.operation[CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET] = 66; }},
      {Verdict::layout, kLt, [](Request& r) { r.layout_a[CUBLASLT_MATRIX_LAYOUT_ORDER] = CUBLASLT_ORDER_ROW; }},
      {Verdict::layout, kLt, [](Request& r) { r.layout_a[CUBLASLT_MATRIX_LAYOUT_ROWS] = 9; }},
      {Verdict::layout, kLt, [](Request& r) { r.layout_a[CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT] = 2; }},
      {Verdict::layout, kLt, [](Request& r) { r.layout_a[8] = 1; }},  // batch mode: an array of pointers
      {Verdict::layout, kLt, [](Request& r) { r.layout_c[CUBLASLT_MATRIX_LAYOUT_LD] = 64; }},
      {Verdict::layout, kLt, [](Request& r) { r.other_c = true; }},
      {Verdict::layout, kLt, [](Request& r) { r.operation[CUBLASLT_MATMUL_DESC_TRANSC] = CUBLAS_OP_T; }},
  };
}

TEST_F(Dropin, ForwardsWhatItMustNotServe) {
  const std::vector<Reason> all = reasons();
  for (size_t i = 0; i < all.size(); ++i)
    for (const Entry entry : all[i].entries) {
      Request r = request(entry, packed_problem(5, 6, 7));
      all[i].change(r);
      EXPECT_EQ(check_forwarded(r, all[i].verdict), "") << name_of(entry) << ", reason " << i;
    }
}

TEST_F(Dropin, ForwardsWhereItCannotServe) {
  const Request r = request(Entry::sgemm, packed_problem(5, 6, 7));
  const auto here = [](Stream) { return 0; };
  dropin::Server elsewhere([](Stream) { return std::nullopt; }, [](int) { return context_; });
  dropin::Server without(here, [](int) { return nullptr; });
  dropin::Server throwing(here, [](int) -> gemm_context_t* { throw std::bad_alloc(); });
  for (const auto& [server, verdict] :
       {std::pair{&elsewhere, Verdict::other_context}, {&without, Verdict::no_context}, {&throwing, Verdict::refused}}) {
    use_server(*server);
    EXPECT_EQ(check_forwarded(r, verdict), "");
  }
}

// The table says that cuBLAS wins: the caller's own handle is to do it.
TEST_F(Dropin, LeavesToCublasWhatTheTableGivesIt) {
  const Problem p = packed_problem(5, 6, 7);
  Table table = table_of(context_->context.device().info(), {emulated_configs().front(), 1, Reduction::ticket},
                         {packed_problem(64, 64, 64), p});
  table.points.back().use_cublas = true;
  table.points.back().cublas_us = 5;
  const TemporaryFolder folder;
  save_table(table, folder.file("table.json")).value_or_throw();
  gemm_context_t* tuned = emulated_context();
  ASSERT_EQ(gemm_load_table(tuned, folder.file("table.json").c_str()), GEMM_SUCCESS) << gemm_last_error();
  dropin::Server server([](Stream) { return 0; }, [&](int) { return tuned; });
  use_server(server);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(check_forwarded(request(Entry::sgemm, p), Verdict::cublas_chosen), "");
  EXPECT_EQ(check_served(request(Entry::sgemm, packed_problem(64, 64, 64))), "");
  gemm_destroy(tuned);
}

TEST_F(Dropin, RefusedLaunchesAreErrorsAndNotForwarded) {
  EmulatorOptions options = default_emulator_options();
  options.faults = {{"", FaultKind::launch_refused}};
  gemm_context_t* broken = emulated_context(options);
  dropin::Server server([](Stream) { return 0; }, [&](int) { return broken; });
  use_server(server);
  std::vector<float> memory(512);
  EXPECT_EQ(call(request(Entry::sgemm, packed_problem(5, 6, 7)), memory.data(), memory.data(), memory.data() + 256),
            CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(forwarded_calls(), "");
  gemm_destroy(broken);
}

}  // namespace
}  // namespace gemm::test
