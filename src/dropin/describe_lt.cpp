#include "dropin/describe_lt.h"

#include <optional>

#include "dropin/describe.h"
#include "dropin/real_library.h"

namespace gemm::dropin {
namespace {

struct Getters {
  decltype(&cublasLtMatmulDescGetAttribute) operation =
      reinterpret_cast<decltype(operation)>(real_cublaslt().function("cublasLtMatmulDescGetAttribute"));
  decltype(&cublasLtMatrixLayoutGetAttribute) layout =
      reinterpret_cast<decltype(layout)>(real_cublaslt().function("cublasLtMatrixLayoutGetAttribute"));

  bool complete() const { return operation && layout; }
};

const Getters& get() {
  static const Getters found;
  return found;
}

// True where the attribute is `expected`, or is younger than the library, which then knows nothing but the default.
template <class T>
bool is_set_to(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, T expected) {
  T value{};
  size_t written = 0;
  const cublasStatus_t status = get().operation(operation, attribute, &value, sizeof value, &written);
  return status != CUBLAS_STATUS_SUCCESS || value == expected;
}

template <class T>
bool read(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, T& value) {
  size_t written = 0;
  return get().operation(operation, attribute, &value, sizeof value, &written) == CUBLAS_STATUS_SUCCESS;
}

template <class T>
bool read(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, T& value) {
  size_t written = 0;
  return get().layout(layout, attribute, &value, sizeof value, &written) == CUBLAS_STATUS_SUCCESS;
}

// CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, which the headers of CUDA 12 do not have; 0 is the mode with strides.
constexpr auto kBatchMode = static_cast<cublasLtMatrixLayoutAttribute_t>(8);

// A plain column-major FP32 matrix, or a strided batch of them.
struct Layout {
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0, stride = 0, plane = 0;
  int32_t batch = 1;

  friend bool operator==(const Layout&, const Layout&) = default;
};

std::optional<Layout> layout_of(cublasLtMatrixLayout_t given) {
  Layout l;
  int32_t order = CUBLASLT_ORDER_COL;
  uint32_t batch_mode = 0;
  const bool known = read(given, CUBLASLT_MATRIX_LAYOUT_ORDER, order) && read(given, CUBLASLT_MATRIX_LAYOUT_ROWS, l.rows) &&
                     read(given, CUBLASLT_MATRIX_LAYOUT_COLS, l.columns) && read(given, CUBLASLT_MATRIX_LAYOUT_LD, l.ld) &&
                     read(given, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, l.batch) &&
                     read(given, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, l.stride) &&
                     read(given, CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, l.plane);
  if (!known || order != CUBLASLT_ORDER_COL || l.plane != 0) return {};
  if (read(given, kBatchMode, batch_mode) && batch_mode != 0) return {};
  if (l.batch == 1) l.stride = 0;
  return l;
}

bool is_fp32(cublasLtMatrixLayout_t layout) {
  uint32_t type = CUDA_R_16F;
  return read(layout, CUBLASLT_MATRIX_LAYOUT_TYPE, type) && type == CUDA_R_32F;
}

Verdict judge_operation(cublasLtMatmulDesc_t operation) {
  int32_t compute = CUBLAS_COMPUTE_16F, scale = CUDA_R_16F;
  if (!read(operation, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, compute) ||
      !read(operation, CUBLASLT_MATMUL_DESC_SCALE_TYPE, scale))
    return Verdict::unusual;
  if ((compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_PEDANTIC) || scale != CUDA_R_32F)
    return Verdict::not_fp32;
  for (const auto scaling :
       {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, CUBLASLT_MATMUL_DESC_C_SCALE_POINTER,
        CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER})
    if (!is_set_to<void*>(operation, scaling, nullptr)) return Verdict::epilogue;
  if (!is_set_to<int32_t>(operation, CUBLASLT_MATMUL_DESC_TRANSC, CUBLAS_OP_N) ||
      !is_set_to<int32_t>(operation, CUBLASLT_MATMUL_DESC_FILL_MODE, CUBLAS_FILL_MODE_FULL))
    return Verdict::layout;
  if (!is_set_to<int32_t>(operation, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, 0)) return Verdict::sm_limit;
  return Verdict::served;
}

// What is done to D last. Nothing where that is none of ours.
std::optional<Epilogue> epilogue_of(cublasLtMatmulDesc_t operation) {
  uint32_t given = CUBLASLT_EPILOGUE_DEFAULT;
  read(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, given);
  switch (given) {
    case CUBLASLT_EPILOGUE_DEFAULT: return Epilogue::none;
    case CUBLASLT_EPILOGUE_RELU: return Epilogue::relu;
    case CUBLASLT_EPILOGUE_BIAS: return Epilogue::bias;
    case CUBLASLT_EPILOGUE_RELU_BIAS: return Epilogue::bias_relu;
    default: return {};
  }
}

// The bias that goes with it: floats, as D is unless the caller says otherwise (-1: as D). Nothing where it is not ours, or
// where there is none.
std::optional<Bias> bias_of(cublasLtMatmulDesc_t operation, int64_t batch) {
  int32_t type = -1;
  const void* data = nullptr;
  int64_t stride = 0;
  read(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type);
  read(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, data);
  read(operation, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, stride);
  if ((type != -1 && type != CUDA_R_32F) || !data || reinterpret_cast<uintptr_t>(data) % sizeof(float) != 0 || stride < 0)
    return {};
  return Bias{static_cast<const float*>(data), batch == 1 ? 0 : stride};
}

// The sizes of the product, or nothing where the matrices do not fit together.
std::optional<Problem> problem_of(const Layout& a, cublasOperation_t op_a, const Layout& b, cublasOperation_t op_b,
                                  const Layout& d) {
  const bool plain_a = op_a == CUBLAS_OP_N, plain_b = op_b == CUBLAS_OP_N;
  const uint64_t k = plain_a ? a.columns : a.rows;
  const bool fits = (plain_a ? a.rows : a.columns) == d.rows && (plain_b ? b.rows : b.columns) == k &&
                    (plain_b ? b.columns : b.rows) == d.columns && a.batch == d.batch && b.batch == d.batch;
  if (!fits) return {};
  return Problem{static_cast<int64_t>(d.rows),
                 static_cast<int64_t>(d.columns),
                 static_cast<int64_t>(k),
                 Op::N,
                 Op::N,
                 a.ld,
                 b.ld,
                 d.ld,
                 d.batch,
                 a.stride,
                 b.stride,
                 d.stride};
}

}  // namespace

Call describe_lt(cublasLtMatmulDesc_t operation, const void* alpha, const void* a, cublasLtMatrixLayout_t layout_a,
                 const void* b, cublasLtMatrixLayout_t layout_b, const void* beta, const void* c,
                 cublasLtMatrixLayout_t layout_c, void* d, cublasLtMatrixLayout_t layout_d) {
  if (!operation || !layout_a || !layout_b || !layout_c || !layout_d || !alpha || !beta || !get().complete())
    return forwarded(Verdict::unusual);
  for (const cublasLtMatrixLayout_t layout : {layout_a, layout_b, layout_c, layout_d})
    if (!is_fp32(layout)) return forwarded(Verdict::not_fp32);
  const Verdict verdict = judge_operation(operation);
  if (verdict != Verdict::served) return forwarded(verdict);

  const std::optional<Layout> of_a = layout_of(layout_a), of_b = layout_of(layout_b), of_d = layout_of(layout_d);
  if (!of_a || !of_b || !of_d) return forwarded(Verdict::layout);
  int32_t scalars = CUBLASLT_POINTER_MODE_HOST;
  read(operation, CUBLASLT_MATMUL_DESC_POINTER_MODE, scalars);
  if (scalars != CUBLASLT_POINTER_MODE_HOST && scalars != CUBLASLT_POINTER_MODE_DEVICE)
    return forwarded(Verdict::scalar_vectors);
  // D = alpha * op(A) * op(B) + beta * C: ours where C is D, or is not read.
  const bool reads_c = scalars == CUBLASLT_POINTER_MODE_DEVICE || *static_cast<const float*>(beta) != 0;
  if (reads_c && (c != d || (layout_c != layout_d && layout_of(layout_c) != of_d))) return forwarded(Verdict::layout);
  int32_t op_a = CUBLAS_OP_N, op_b = CUBLAS_OP_N;
  if (!read(operation, CUBLASLT_MATMUL_DESC_TRANSA, op_a) || !read(operation, CUBLASLT_MATMUL_DESC_TRANSB, op_b))
    return forwarded(Verdict::unusual);
  const auto as_a = static_cast<cublasOperation_t>(op_a), as_b = static_cast<cublasOperation_t>(op_b);
  const std::optional<Problem> problem = problem_of(*of_a, as_a, *of_b, as_b, *of_d);
  if (!problem) return forwarded(Verdict::layout);
  const std::optional<Epilogue> epilogue = epilogue_of(operation);
  const std::optional<Bias> bias =
      epilogue && has_bias(*epilogue) ? bias_of(operation, problem->batch) : std::optional(Bias{});
  if (!epilogue || !bias) return forwarded(Verdict::epilogue);
  Call call = describe(as_a, as_b, *problem, alpha, a, b, beta, d);
  call.device_scalars = scalars == CUBLASLT_POINTER_MODE_DEVICE;
  call.epilogue = *epilogue;
  call.bias = *bias;
  return call;
}

}  // namespace gemm::dropin
