// The C boundary: checks what C callers can get wrong, turns statuses and exceptions into codes and a message.
#include "dispatch/c_api.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace gemm {
namespace {

// The message of the thread's last failure. A fixed buffer, because it must work when memory is out.
struct LastError {
  char text[2048] = "";
};
thread_local LastError last_error;

gemm_status_t fail(gemm_status_t code, const char* message) {
  std::strncpy(last_error.text, message, sizeof last_error.text - 1);
  return code;
}

gemm_status_t report(const Status& status) { return status.ok() ? GEMM_SUCCESS : fail(status.code, status.message.c_str()); }

// Runs `body`, which returns a Status; no exception leaves.
template <class Body>
gemm_status_t guarded(const Body& body) {
  try {
    return report(body());
  } catch (const std::bad_alloc&) {
    return fail(GEMM_OUT_OF_MEMORY, "the host has no memory left");
  } catch (const Error& error) {
    return fail(GEMM_LAUNCH_FAILED, error.what());
  } catch (const std::exception& error) {
    return fail(GEMM_INTERNAL, error.what());
  } catch (...) {
    return fail(GEMM_INTERNAL, "an unknown exception");
  }
}

Status null_argument(const char* name) { return {GEMM_INVALID_ARGUMENT, std::string(name) + " must not be NULL"}; }

Status op_of(gemm_op_t value, Op& op) {
  switch (static_cast<int>(value)) {
    case GEMM_OP_N: op = Op::N; return {};
    case GEMM_OP_T:
    case GEMM_OP_C: op = Op::T; return {};
    default: return {GEMM_INVALID_ARGUMENT, "op is " + std::to_string(value) + " but must be GEMM_OP_N, _T or _C"};
  }
}

Status problem_of(const gemm_problem_t& given, Problem& problem) {
  for (const Status& status : {op_of(given.op_a, problem.op_a), op_of(given.op_b, problem.op_b)})
    if (!status.ok()) return status;
  problem.m = given.m, problem.n = given.n, problem.k = given.k;
  problem.lda = given.lda, problem.ldb = given.ldb, problem.ldc = given.ldc;
  problem.batch = given.batch;
  problem.stride_a = given.stride_a, problem.stride_b = given.stride_b, problem.stride_c = given.stride_c;
  return {};
}

// Operands of which only the alignment counts; nobody writes through c.
Operands only_aligned(const float* a, const float* b, const float* c) { return {a, b, const_cast<float*>(c), 1, 0}; }

Status multiply(gemm_context_t* context, gemm_stream_t stream, const gemm_problem_t& given, const float* alpha,
                const float* a, const float* b, const float* beta, float* c) {
  if (!context) return null_argument("context");
  if (!alpha) return null_argument("alpha");
  if (!beta) return null_argument("beta");
  Problem problem;
  Status status = problem_of(given, problem);
  if (!status.ok()) return status;
  return context->context.sgemm(problem, {a, b, c, *alpha, *beta}, stream);
}

}  // namespace

gemm_context_t* make_context(std::unique_ptr<Device> device, ContextOptions options) {
  return new gemm_context{Context(std::move(device), std::move(options))};
}

}  // namespace gemm

using gemm::guarded;
using gemm::null_argument;
using gemm::Status;

gemm_status_t gemm_create(gemm_context_t** context, int device) {
  return guarded([&]() -> Status {
    if (!context) return null_argument("context");
    *context = nullptr;
    gemm::Result<std::unique_ptr<gemm::Device>> opened = gemm::open_cuda_device(device);
    if (!opened) return {GEMM_NO_DEVICE, opened.error()};
    *context = gemm::make_context(std::move(*opened));
    return {};
  });
}

gemm_status_t gemm_destroy(gemm_context_t* context) {
  return guarded([&]() -> Status {
    delete context;
    return {};
  });
}

gemm_status_t gemm_load_table(gemm_context_t* context, const char* path) {
  return guarded([&]() -> Status {
    if (!context) return null_argument("context");
    if (!path) return null_argument("path");
    return context->context.load_table(path);
  });
}

gemm_status_t gemm_sgemm(gemm_context_t* context, gemm_stream_t stream, gemm_op_t op_a, gemm_op_t op_b, int64_t m, int64_t n,
                         int64_t k, const float* alpha, const float* a, int64_t lda, const float* b, int64_t ldb,
                         const float* beta, float* c, int64_t ldc) {
  return guarded([&] {
    const gemm_problem_t problem{op_a, op_b, m, n, k, lda, ldb, ldc, 1, 0, 0, 0};
    return gemm::multiply(context, stream, problem, alpha, a, b, beta, c);
  });
}

gemm_status_t gemm_sgemm_strided_batched(gemm_context_t* context, gemm_stream_t stream, gemm_op_t op_a, gemm_op_t op_b,
                                         int64_t m, int64_t n, int64_t k, const float* alpha, const float* a, int64_t lda,
                                         int64_t stride_a, const float* b, int64_t ldb, int64_t stride_b, const float* beta,
                                         float* c, int64_t ldc, int64_t stride_c, int64_t batch) {
  return guarded([&] {
    const gemm_problem_t problem{op_a, op_b, m, n, k, lda, ldb, ldc, batch, stride_a, stride_b, stride_c};
    return gemm::multiply(context, stream, problem, alpha, a, b, beta, c);
  });
}

gemm_status_t gemm_set_workspace(gemm_context_t* context, void* workspace, size_t bytes) {
  return guarded([&]() -> Status {
    if (!context) return null_argument("context");
    return context->context.set_workspace(workspace, static_cast<int64_t>(bytes));
  });
}

gemm_status_t gemm_get_workspace_size(gemm_context_t* context, size_t* bytes) {
  return guarded([&]() -> Status {
    if (!context) return null_argument("context");
    if (!bytes) return null_argument("bytes");
    *bytes = static_cast<size_t>(context->context.workspace_size());
    return {};
  });
}

gemm_status_t gemm_workspace_size(gemm_context_t* context, const gemm_problem_t* problem, size_t* bytes) {
  return guarded([&]() -> Status {
    if (!context) return null_argument("context");
    if (!problem) return null_argument("problem");
    if (!bytes) return null_argument("bytes");
    gemm::Problem p;
    if (Status status = gemm::problem_of(*problem, p); !status.ok()) return status;
    int64_t needed = 0;
    Status status = context->context.best_workspace(p, needed);
    if (status.ok()) *bytes = static_cast<size_t>(needed);
    return status;
  });
}

gemm_status_t gemm_prepare(gemm_context_t* context, gemm_stream_t stream, const gemm_problem_t* problem, const float* a,
                           const float* b, const float* c) {
  return guarded([&]() -> Status {
    if (!context) return null_argument("context");
    if (!problem) return null_argument("problem");
    gemm::Problem p;
    if (Status status = gemm::problem_of(*problem, p); !status.ok()) return status;
    return context->context.prepare(p, gemm::only_aligned(a, b, c), stream);
  });
}

gemm_status_t gemm_explain(gemm_context_t* context, const gemm_problem_t* problem, const float* a, const float* b,
                           const float* c, char* text, size_t size, size_t* length) {
  return guarded([&]() -> Status {
    if (!context) return null_argument("context");
    if (!problem) return null_argument("problem");
    if (!text && size > 0) return null_argument("text");
    gemm::Problem p;
    if (Status status = gemm::problem_of(*problem, p); !status.ok()) return status;
    std::string whole;
    if (Status status = context->context.explain(p, gemm::only_aligned(a, b, c), whole); !status.ok()) return status;
    if (length) *length = whole.size();
    if (size > 0) {
      const size_t kept = std::min(whole.size(), size - 1);
      std::memcpy(text, whole.data(), kept);
      text[kept] = '\0';
    }
    return {};
  });
}

const char* gemm_last_error(void) { return gemm::last_error.text; }

const char* gemm_status_name(gemm_status_t status) {
  switch (static_cast<int>(status)) {
    case GEMM_SUCCESS: return "GEMM_SUCCESS";
    case GEMM_INVALID_ARGUMENT: return "GEMM_INVALID_ARGUMENT";
    case GEMM_NO_DEVICE: return "GEMM_NO_DEVICE";
    case GEMM_OUT_OF_MEMORY: return "GEMM_OUT_OF_MEMORY";
    case GEMM_NOT_SUPPORTED: return "GEMM_NOT_SUPPORTED";
    case GEMM_TABLE_ERROR: return "GEMM_TABLE_ERROR";
    case GEMM_LAUNCH_FAILED: return "GEMM_LAUNCH_FAILED";
    case GEMM_INTERNAL: return "GEMM_INTERNAL";
    default: return "unknown gemm_status_t";
  }
}

const char* gemm_version(void) { return GEMM_VERSION; }
