// The drop-in: what it serves and what it forwards, on the emulated device with a fake cuBLAS behind it; and, as a preloaded
// library, that it finds the real one however the program opened it.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "command.h"
#include "dispatch_cases.h"
#include "dropin/call.h"
#include "dropin/real_library.h"
#include "dropin/report.h"
#include "dropin/server.h"
#include "dropin/settings.h"
#include "fake.h"

namespace gemm::dropin {
namespace {
Server* used_server = nullptr;
}
Server& server() { return *used_server; }
}  // namespace gemm::dropin

namespace gemm::test {
namespace {

using dropin::Entry;
using dropin::kEntryNames;
using dropin::kVerdictNames;
using dropin::Verdict;

constexpr cudaDataType kFloat = CUDA_R_32F;

gemm_context_t* emulated_context(EmulatorOptions options = default_emulator_options()) {
  return make_context(make_emulated_device(std::move(options)), {.find_table = false, .cublas_is_callers = true});
}

// A product that is done through one of the entry points, with everything that a call may set.
struct Request {
  Entry entry = Entry::sgemm;
  Problem problem = packed_problem(5, 6, 7);
  float alpha = 1.5f, beta = -0.5f;
  cublasOperation_t op_a = CUBLAS_OP_N, op_b = CUBLAS_OP_N;
  cudaDataType type_a = kFloat;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasGemmAlgo_t algorithm = CUBLAS_GEMM_DEFAULT;
  FakeHandle settings;
  bool null_handle = false, null_alpha = false, null_a = false, other_c = false;
  // cublasLtMatmul: attributes that differ from the plain ones.
  FakeAttributes operation, layout_a, layout_c;
};

Request request(Entry entry, const Problem& problem) {
  Request r;
  r.entry = entry;
  r.problem = problem;
  r.op_a = problem.op_a == Op::N ? CUBLAS_OP_N : CUBLAS_OP_T;
  r.op_b = problem.op_b == Op::N ? CUBLAS_OP_N : CUBLAS_OP_T;
  return r;
}

FakeAttributes layout_of(int64_t rows, int64_t columns, int64_t ld, int64_t batch, int64_t stride,
                         const FakeAttributes& changes) {
  FakeAttributes all = changes;
  all.insert({{CUBLASLT_MATRIX_LAYOUT_TYPE, kFloat},
              {CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_ORDER_COL},
              {CUBLASLT_MATRIX_LAYOUT_ROWS, static_cast<uint64_t>(rows)},
              {CUBLASLT_MATRIX_LAYOUT_COLS, static_cast<uint64_t>(columns)},
              {CUBLASLT_MATRIX_LAYOUT_LD, static_cast<uint64_t>(ld)},
              {CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<uint64_t>(batch)},
              {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, static_cast<uint64_t>(stride)},
              {CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, 0}});
  return all;
}

cublasStatus_t call_lt(const Request& r, const float* a, const float* b, float* c) {
  const Problem& p = r.problem;
  FakeAttributes operation = r.operation;
  operation.insert({{CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, static_cast<uint64_t>(r.compute)},
                    {CUBLASLT_MATMUL_DESC_SCALE_TYPE, kFloat},
                    {CUBLASLT_MATMUL_DESC_TRANSA, r.op_a},
                    {CUBLASLT_MATMUL_DESC_TRANSB, r.op_b}});
  FakeAttributes layout_a = layout_of(p.rows_a(), p.columns_a(), p.lda, p.batch, p.stride_a, r.layout_a);
  FakeAttributes layout_b = layout_of(p.rows_b(), p.columns_b(), p.ldb, p.batch, p.stride_b, {});
  FakeAttributes layout_c = layout_of(p.m, p.n, p.ldc, p.batch, p.stride_c, r.layout_c);
  FakeAttributes layout_d = layout_of(p.m, p.n, p.ldc, p.batch, p.stride_c, {});
  const auto layout = [](FakeAttributes& all) { return reinterpret_cast<cublasLtMatrixLayout_t>(&all); };
  FakeHandle any;
  return cublasLtMatmul(r.null_handle ? nullptr : reinterpret_cast<cublasLtHandle_t>(&any),
                        reinterpret_cast<cublasLtMatmulDesc_t>(&operation), &r.alpha, a, layout(layout_a), b,
                        layout(layout_b), &r.beta, r.other_c ? b : c, layout(layout_c), c, layout(layout_d), nullptr,
                        nullptr, 0, nullptr);
}

cublasStatus_t call(Request r, const float* a, const float* b, float* c) {
  const Problem& p = r.problem;
  const auto h = r.null_handle ? nullptr : reinterpret_cast<cublasHandle_t>(&r.settings);
  const float* alpha = r.null_alpha ? nullptr : &r.alpha;
  const float* beta = &r.beta;
  const auto op_a = r.op_a, op_b = r.op_b;
  const auto i = [](int64_t size) { return static_cast<int>(size); };
  if (r.null_a) a = nullptr;
  // The emulated device reads the host's memory, so this is an array on the device.
  std::vector<const float*> arrays_a, arrays_b;
  std::vector<float*> arrays_c;
  for (int64_t matrix = 0; matrix < p.batch; ++matrix) {
    arrays_a.push_back(a + matrix * p.stride_a);
    arrays_b.push_back(b + matrix * p.stride_b);
    arrays_c.push_back(c + matrix * p.stride_c);
  }
  const float* const* pointers_a = r.null_a ? nullptr : arrays_a.data();
  const float* const* pointers_b = arrays_b.data();
  float* const* pointers_c = arrays_c.data();
  const auto* untyped_a = reinterpret_cast<const void* const*>(pointers_a);
  const auto* untyped_b = reinterpret_cast<const void* const*>(pointers_b);
  auto* const* untyped_c = reinterpret_cast<void* const*>(pointers_c);
  switch (r.entry) {
    case Entry::sgemm:
      return cublasSgemm_v2(h, op_a, op_b, i(p.m), i(p.n), i(p.k), alpha, a, i(p.lda), b, i(p.ldb), beta, c, i(p.ldc));
    case Entry::sgemm_64: return cublasSgemm_v2_64(h, op_a, op_b, p.m, p.n, p.k, alpha, a, p.lda, b, p.ldb, beta, c, p.ldc);
    case Entry::sgemm_strided:
      return cublasSgemmStridedBatched(h, op_a, op_b, i(p.m), i(p.n), i(p.k), alpha, a, i(p.lda), p.stride_a, b, i(p.ldb),
                                       p.stride_b, beta, c, i(p.ldc), p.stride_c, i(p.batch));
    case Entry::sgemm_strided_64:
      return cublasSgemmStridedBatched_64(h, op_a, op_b, p.m, p.n, p.k, alpha, a, p.lda, p.stride_a, b, p.ldb, p.stride_b,
                                          beta, c, p.ldc, p.stride_c, p.batch);
    case Entry::sgemm_batched:
      return cublasSgemmBatched(h, op_a, op_b, i(p.m), i(p.n), i(p.k), alpha, pointers_a, i(p.lda), pointers_b, i(p.ldb),
                                beta, pointers_c, i(p.ldc), i(p.batch));
    case Entry::sgemm_batched_64:
      return cublasSgemmBatched_64(h, op_a, op_b, p.m, p.n, p.k, alpha, pointers_a, p.lda, pointers_b, p.ldb, beta,
                                   pointers_c, p.ldc, p.batch);
    case Entry::sgemm_ex:
      return cublasSgemmEx(h, op_a, op_b, i(p.m), i(p.n), i(p.k), alpha, a, r.type_a, i(p.lda), b, kFloat, i(p.ldb), beta, c,
                           kFloat, i(p.ldc));
    case Entry::sgemm_ex_64:
      return cublasSgemmEx_64(h, op_a, op_b, p.m, p.n, p.k, alpha, a, r.type_a, p.lda, b, kFloat, p.ldb, beta, c, kFloat,
                              p.ldc);
    case Entry::gemm_ex:
      return cublasGemmEx(h, op_a, op_b, i(p.m), i(p.n), i(p.k), alpha, a, r.type_a, i(p.lda), b, kFloat, i(p.ldb), beta, c,
                          kFloat, i(p.ldc), r.compute, r.algorithm);
    case Entry::gemm_ex_64:
      return cublasGemmEx_64(h, op_a, op_b, p.m, p.n, p.k, alpha, a, r.type_a, p.lda, b, kFloat, p.ldb, beta, c, kFloat,
                             p.ldc, r.compute, r.algorithm);
    case Entry::gemm_strided_ex:
      return cublasGemmStridedBatchedEx(h, op_a, op_b, i(p.m), i(p.n), i(p.k), alpha, a, r.type_a, i(p.lda), p.stride_a, b,
                                        kFloat, i(p.ldb), p.stride_b, beta, c, kFloat, i(p.ldc), p.stride_c, i(p.batch),
                                        r.compute, r.algorithm);
    case Entry::gemm_strided_ex_64:
      return cublasGemmStridedBatchedEx_64(h, op_a, op_b, p.m, p.n, p.k, alpha, a, r.type_a, p.lda, p.stride_a, b, kFloat,
                                           p.ldb, p.stride_b, beta, c, kFloat, p.ldc, p.stride_c, p.batch, r.compute,
                                           r.algorithm);
    case Entry::gemm_batched_ex:
      return cublasGemmBatchedEx(h, op_a, op_b, i(p.m), i(p.n), i(p.k), alpha, untyped_a, r.type_a, i(p.lda), untyped_b,
                                 kFloat, i(p.ldb), beta, untyped_c, kFloat, i(p.ldc), i(p.batch), r.compute, r.algorithm);
    case Entry::gemm_batched_ex_64:
      return cublasGemmBatchedEx_64(h, op_a, op_b, p.m, p.n, p.k, alpha, untyped_a, r.type_a, p.lda, untyped_b, kFloat,
                                    p.ldb, beta, untyped_c, kFloat, p.ldc, p.batch, r.compute, r.algorithm);
    case Entry::lt_matmul: return call_lt(r, a, b, c);
  }
  return CUBLAS_STATUS_INTERNAL_ERROR;
}

std::string name_of(Entry entry) { return kEntryNames[static_cast<size_t>(entry)]; }
std::string name_of(Verdict verdict) { return kVerdictNames[static_cast<size_t>(verdict)]; }

class Dropin : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const char* variable : {"GEMM_DROPIN", "GEMM_DROPIN_REPORT", "NVIDIA_TF32_OVERRIDE"}) unsetenv(variable);
    // As Python opens its modules: no symbol of these is in the global scope.
    fake_cublas_ = dlopen(GEMM_FAKE_CUBLAS, RTLD_NOW | RTLD_LOCAL);
    fake_cublaslt_ = dlopen(GEMM_FAKE_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
    context_ = emulated_context();
  }
  static void TearDownTestSuite() { gemm_destroy(context_); }
  void SetUp() override {
    ASSERT_TRUE(fake_cublas_ && fake_cublaslt_) << dlerror();
    dropin::used_server = &server_;
    forwarded_calls();
  }

  // What reached the fake libraries since the last question.
  static std::string forwarded_calls() {
    std::string calls;
    for (const auto& [library, name] :
         {std::pair{fake_cublas_, "fake_cublas_calls"}, {fake_cublaslt_, "fake_cublaslt_calls"}})
      calls += reinterpret_cast<const char* (*)()>(dlsym(library, name))();
    return calls;
  }

  // Why the request was not served rightly, or an empty string.
  static std::string check_served(const Request& r) {
    const ApiCase c{r.problem, r.alpha, r.beta};
    Device& device = context_->context.device();
    const Problem& p = r.problem;
    const HostMatrix a = random_matrix(p.rows_a(), p.columns_a(), p.lda, p.stride_a, p.batch, p.extent_a(), false, 1);
    const HostMatrix b = random_matrix(p.rows_b(), p.columns_b(), p.ldb, p.stride_b, p.batch, p.extent_b(), false, 2);
    const Buffer device_a = upload(device, a, 0), device_b = upload(device, b, 0);
    const HostMatrix before = c_before(c);
    GuardedC out(device, before, 64, 0);
    const uint64_t served = dropin::calls(r.entry, Verdict::served);
    const cublasStatus_t status = call(r, device_a.as<float>(), device_b.as<float>(), out.data());
    if (status != CUBLAS_STATUS_SUCCESS) return "status " + std::to_string(status);
    if (const std::string calls = forwarded_calls(); !calls.empty()) return "forwarded: " + calls;
    if (dropin::calls(r.entry, Verdict::served) != served + 1) return "not counted";
    HostMatrix after = before;
    if (std::string why = out.read(after); !why.empty()) return why;
    return why_wrong({{}, p, r.alpha, r.beta}, a, b, before, after);
  }

  // Why the request did not go, for the expected reason, to the real function and nowhere else; or an empty string.
  static std::string check_forwarded(const Request& r, Verdict expected) {
    std::vector<float> memory(4096, 7.0f);
    const uint64_t before = dropin::calls(r.entry, expected);
    const cublasStatus_t status = call(r, memory.data(), memory.data() + 1024, memory.data() + 2048);
    const std::string calls = forwarded_calls();
    if (dropin::calls(r.entry, expected) != before + 1) return "not counted as " + name_of(expected);
    if (calls.rfind(name_of(r.entry) + (r.entry == Entry::lt_matmul ? " " : "("), 0) != 0)
      return "the fake was asked " + calls;
    const bool refused = r.problem.m < 0 && r.entry != Entry::lt_matmul;
    if (status != (refused ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS)) return "status " + std::to_string(status);
    for (const float word : memory)
      if (word != 7.0f) return "memory was touched";
    return {};
  }

  static inline void* fake_cublas_ = nullptr;
  static inline void* fake_cublaslt_ = nullptr;
  static inline gemm_context_t* context_ = nullptr;
  dropin::Server server_{[](Stream) { return 0; }, [](int) { return context_; }};
};

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
  dropin::used_server = &server;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(check_forwarded(request(Entry::sgemm, p), Verdict::cublas_chosen), "");
  EXPECT_EQ(check_served(request(Entry::sgemm, packed_problem(64, 64, 64))), "");
  gemm_destroy(tuned);
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
      {Verdict::epilogue, kLt, [](Request& r) { r.operation[CUBLASLT_MATMUL_DESC_EPILOGUE] = CUBLASLT_EPILOGUE_RELU_BIAS; }},
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
    dropin::used_server = server;
    EXPECT_EQ(check_forwarded(r, verdict), "");
  }
}

TEST_F(Dropin, RefusedLaunchesAreErrorsAndNotForwarded) {
  EmulatorOptions options = default_emulator_options();
  options.faults = {{"", FaultKind::launch_refused}};
  gemm_context_t* broken = emulated_context(options);
  dropin::Server server([](Stream) { return 0; }, [&](int) { return broken; });
  dropin::used_server = &server;
  std::vector<float> memory(512);
  EXPECT_EQ(call(request(Entry::sgemm, packed_problem(5, 6, 7)), memory.data(), memory.data(), memory.data() + 256),
            CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(forwarded_calls(), "");
  gemm_destroy(broken);
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

TEST(DropinParts, ReadsTheEnvironment) {
  struct Case {
    const char* variable;
    const char* value;
    bool off, report, reduced;
  };
  for (const Case& c : {Case{"GEMM_DROPIN", "off", true, false, false},
                        {"GEMM_DROPIN", "on", false, false, false},
                        {"GEMM_DROPIN_REPORT", "1", false, true, false},
                        {"GEMM_DROPIN_REPORT", "0", false, false, false},
                        {"NVIDIA_TF32_OVERRIDE", "1", false, false, true},
                        {"NVIDIA_TF32_OVERRIDE", "0", false, false, false},
                        {"CUBLAS_EMULATE_SINGLE_PRECISION", "1", false, false, true}}) {
    setenv(c.variable, c.value, 1);
    const dropin::Settings s = dropin::read_settings();
    unsetenv(c.variable);
    EXPECT_EQ(s.off, c.off) << c.variable;
    EXPECT_EQ(s.report, c.report) << c.variable;
    EXPECT_EQ(s.reduced_math, c.reduced) << c.variable;
  }
}

// --- preloaded into another process -----------------------------------------------------------------------------------

class DropinPreloaded : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a program that is not sanitized cannot load a sanitized library";
#endif
  }
};

CommandResult run_preloaded(const std::string& libraries, const std::string& environment, const std::string& arguments) {
  return run_command("env LD_PRELOAD='" + libraries + "' " + environment + " " GEMM_DROPIN_HOST " " + arguments);
}

// Without a GPU everything is forwarded, each call once: what cuBLAS calls from its inside is its own affair.
constexpr const char* kForwarded =
    "statuses 0 7 0 0\ncalls cublasSgemm_v2(2,3,4) cublasSgemm_v2_64(-1,3,4) cublasGemmEx(5,6,7) cublasSgemm_v2(5,6,7) "
    "cublasLtMatmul \n";
constexpr const char* kClient = GEMM_DROPIN_CLIENT;

TEST_F(DropinPreloaded, FindsTheRealLibraryInAnyScope) {
  for (const char* scope : {"local ", "global "}) {
    const CommandResult result = run_preloaded(GEMM_DROPIN_LIBRARY, "GEMM_DROPIN_REPORT=1", std::string(scope) + kClient);
    EXPECT_EQ(result.exit_code, 0) << scope;
    EXPECT_EQ(result.output, std::string(kForwarded) +
                                 "gemm drop-in: 0 served, 4 forwarded; "
                                 "cublasSgemm_v2: 0 served, 1 forwarded (1 other context); "
                                 "cublasSgemm_v2_64: 0 served, 1 forwarded (1 unusual); "
                                 "cublasGemmEx: 0 served, 1 forwarded (1 other context); "
                                 "cublasLtMatmul: 0 served, 1 forwarded (1 unusual)\n")
        << scope;
  }
}

TEST_F(DropinPreloaded, TwoPreloadsForwardToEachOtherAndThenOn) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(GEMM_DROPIN_LIBRARY, folder.file("second.so"));
  const CommandResult result = run_preloaded(GEMM_DROPIN_LIBRARY ":" + folder.file("second.so"), "GEMM_DROPIN_REPORT=1",
                                             std::string("local ") + kClient);
  EXPECT_EQ(result.output.rfind(kForwarded, 0), 0u) << result.output;
  const size_t first = result.output.find("gemm drop-in: 0 served, 4 forwarded");
  ASSERT_NE(first, std::string::npos) << result.output;
  EXPECT_NE(result.output.find("gemm drop-in: 0 served, 4 forwarded", first + 1), std::string::npos) << result.output;
}

TEST_F(DropinPreloaded, OffForwardsAndSilenceIsTheDefault) {
  CommandResult result = run_preloaded(GEMM_DROPIN_LIBRARY, "GEMM_DROPIN=off", std::string("local ") + kClient);
  EXPECT_EQ(result.output, kForwarded);
  result = run_preloaded(GEMM_DROPIN_LIBRARY, "GEMM_DROPIN=off GEMM_DROPIN_REPORT=1", std::string("local ") + kClient);
  EXPECT_NE(result.output.find("cublasGemmEx: 0 served, 1 forwarded (1 off)"), std::string::npos) << result.output;
  // A process without cuBLAS has nothing to report.
  result = run_command("env LD_PRELOAD=" GEMM_DROPIN_LIBRARY " GEMM_DROPIN_REPORT=1 true");
  EXPECT_EQ(result.output, "");
}

// The loader takes the first file of the name and fails on it; so it looks the same on a machine that has a cuBLAS.
TEST_F(DropinPreloaded, WithoutCublasItSaysSoOnce) {
  const TemporaryFolder folder;
  for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}) std::ofstream(folder.file(name)) << "none";
  const CommandResult result = run_preloaded(GEMM_DROPIN_LIBRARY, "LD_LIBRARY_PATH='" + folder.path() + "'", "bare");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  const size_t message = result.output.find("gemm: error: the drop-in finds no libcublas to forward cublasSgemm_v2 to: ");
  ASSERT_NE(message, std::string::npos) << result.output;
  EXPECT_EQ(result.output.find("gemm: error", message + 1), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("statuses 1 1\n"), std::string::npos) << result.output;  // CUBLAS_STATUS_NOT_INITIALIZED
}

TEST_F(DropinPreloaded, ExportsTheEntryPointsOnly) {
  const CommandResult result = run_command("nm -D --defined-only --format=posix " GEMM_DROPIN_LIBRARY);
  std::set<std::string> exported;
  std::istringstream lines(result.output);
  for (std::string name, rest; lines >> name && std::getline(lines, rest);) exported.insert(name);
  EXPECT_EQ(exported, std::set<std::string>(kEntryNames.begin(), kEntryNames.end()));
}

// The program may come with a newer C++ library than ours; and it must start on a machine without CUDA.
TEST_F(DropinPreloaded, NeedsTheCLibraryOnly) {
  const CommandResult result = run_command("readelf -d " GEMM_DROPIN_LIBRARY " | grep NEEDED");
  for (const char* name : {"stdc++", "gcc", "cuda", "cublas", "nvrtc", "nvidia"})
    EXPECT_EQ(result.output.find(name), std::string::npos) << name << " in\n" << result.output;
}

}  // namespace
}  // namespace gemm::test
