#include "request.h"

#include <cublasLt.h>

#include <vector>

namespace gemm::test {
namespace {

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

cublasLtEpilogue_t lt_epilogue(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::bias: return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::relu: return CUBLASLT_EPILOGUE_RELU;
    case Epilogue::bias_relu: return CUBLASLT_EPILOGUE_RELU_BIAS;
    default: return CUBLASLT_EPILOGUE_DEFAULT;
  }
}

cublasStatus_t call_lt(const Request& r, const float* a, const float* b, float* c) {
  const Problem& p = r.problem;
  FakeAttributes operation = r.operation;
  operation.insert({{CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, static_cast<uint64_t>(r.compute)},
                    {CUBLASLT_MATMUL_DESC_SCALE_TYPE, kFloat},
                    {CUBLASLT_MATMUL_DESC_TRANSA, r.op_a},
                    {CUBLASLT_MATMUL_DESC_TRANSB, r.op_b},
                    {CUBLASLT_MATMUL_DESC_EPILOGUE, lt_epilogue(r.epilogue)},
                    {CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<uint64_t>(r.bias.data)},
                    {CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, static_cast<uint64_t>(r.bias.stride)},
                    {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, UINT64_MAX}});  // -1: as D
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

}  // namespace

Request request(Entry entry, const Problem& problem) {
  Request r;
  r.entry = entry;
  r.problem = problem;
  r.op_a = problem.op_a == Op::N ? CUBLAS_OP_N : CUBLAS_OP_T;
  r.op_b = problem.op_b == Op::N ? CUBLAS_OP_N : CUBLAS_OP_T;
  return r;
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

}  // namespace gemm::test
