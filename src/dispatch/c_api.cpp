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
  const size_t length = std::min(std::strlen(message), sizeof last_error.text - 1);
  std::memcpy(last_error.text, message, length);
  last_error.text[length] = '\0';
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

bool is_op(gemm_op_t value) { return static_cast<unsigned>(value) <= GEMM_OP_C; }

Op op_of(gemm_op_t value) { return value == GEMM_OP_N ? Op::N : Op::T; }

Status wrong_ops(gemm_op_t op_a, gemm_op_t op_b) {
  const auto wrong = static_cast<int>(is_op(op_a) ? op_b : op_a);
  return {GEMM_INVALID_ARGUMENT, "op is " + std::to_string(wrong) + " but must be GEMM_OP_N, _T or _C"};
}

Status problem_of(const gemm_problem_t& given, Problem& problem) {
  if (!is_op(given.op_a) || !is_op(given.op_b)) return wrong_ops(given.op_a, given.op_b);
  problem = {given.m, given.n, given.k, op_of(given.op_a), op_of(given.op_b), given.lda, given.ldb, given.ldc, given.batch,
             0,       0,       0};
  // Strides of a single matrix mean nothing: as 0, all of them are one problem to those who remember it.
  if (given.batch != 1)
    problem.stride_a = given.stride_a, problem.stride_b = given.stride_b, problem.stride_c = given.stride_c;
  return {};
}

// Operands of which only the alignment counts; nobody writes through c.
Operands only_aligned(const float* a, const float* b, const float* c) { return {a, b, const_cast<float*>(c), 1, 0, {}}; }

Status check_scalars(gemm_scalars_t scalars) {
  if (scalars == GEMM_SCALARS_HOST || scalars == GEMM_SCALARS_DEVICE) return {};
  return {GEMM_INVALID_ARGUMENT, "scalars is " + std::to_string(static_cast<int>(scalars)) +
                                     " but must be GEMM_SCALARS_HOST or GEMM_SCALARS_DEVICE"};
}

// The product of operands that name the matrices; alpha and beta are added here.
Status multiply(gemm_context_t* context, gemm_stream_t stream, const Problem& problem, gemm_scalars_t scalars,
                const float* alpha, const float* beta, Operands& operands) {
  if (!context) return null_argument("context");
  if (!alpha) return null_argument("alpha");
  if (!beta) return null_argument("beta");
  if (scalars == GEMM_SCALARS_HOST) {
    operands.alpha = *alpha, operands.beta = *beta;
  } else {
    if (Status status = check_scalars(scalars); !status.ok()) return status;
    operands.indirect.scalars = true;
    operands.indirect.alpha = alpha, operands.indirect.beta = beta;
  }
  return context->context.sgemm(problem, operands, stream);
}

Status multiply_arrays(gemm_context_t* context, gemm_stream_t stream, const gemm_problem_t& given, gemm_scalars_t scalars,
                       const float* alpha, const float* const* a, const float* const* b, const float* beta,
                       float* const* c) {
  Problem problem;
  if (Status status = problem_of(given, problem); !status.ok()) return status;
  problem.stride_a = problem.stride_b = problem.stride_c = 0;
  Operands operands;
  operands.indirect.arrays = true;
  operands.indirect.a = a, operands.indirect.b = b, operands.indirect.c = c;
  return multiply(context, stream, problem, scalars, alpha, beta, operands);
}

Status prepare(gemm_context_t* context, gemm_stream_t stream, const gemm_problem_t* given, const Operands& operands) {
  if (!context) return null_argument("context");
  if (!given) return null_argument("problem");
  Problem problem;
  if (Status status = problem_of(*given, problem); !status.ok()) return status;
  if (operands.indirect.arrays) problem.stride_a = problem.stride_b = problem.stride_c = 0;
  return context->context.prepare(problem, operands, stream);
}

}  // namespace

gemm_context_t* make_context(std::unique_ptr<Device> device, ContextOptions options) {
  return new gemm_context{Context(std::move(device), std::move(options))};
}

gemm_status_t sgemm(gemm_context_t* context, gemm_stream_t stream, const gemm_problem_t& given, gemm_scalars_t scalars,
                    const float* alpha, const float* beta, Operands operands) {
  return guarded([&]() -> Status {
    Problem problem;
    if (Status status = problem_of(given, problem); !status.ok()) return status;
    return multiply(context, stream, problem, scalars, alpha, beta, operands);
  });
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
  return guarded([&]() -> Status {
    if (!gemm::is_op(op_a) || !gemm::is_op(op_b)) return gemm::wrong_ops(op_a, op_b);
    const gemm::Problem problem{m, n, k, gemm::op_of(op_a), gemm::op_of(op_b), lda, ldb, ldc, 1, 0, 0, 0};
    gemm::Operands operands{a, b, c, 1, 0, {}};
    return gemm::multiply(context, stream, problem, GEMM_SCALARS_HOST, alpha, beta, operands);
  });
}

gemm_status_t gemm_sgemm_strided_batched(gemm_context_t* context, gemm_stream_t stream, gemm_op_t op_a, gemm_op_t op_b,
                                         int64_t m, int64_t n, int64_t k, const float* alpha, const float* a, int64_t lda,
                                         int64_t stride_a, const float* b, int64_t ldb, int64_t stride_b, const float* beta,
                                         float* c, int64_t ldc, int64_t stride_c, int64_t batch) {
  return guarded([&]() -> Status {
    gemm::Problem problem;
    const gemm_problem_t given{op_a, op_b, m, n, k, lda, ldb, ldc, batch, stride_a, stride_b, stride_c};
    if (Status status = gemm::problem_of(given, problem); !status.ok()) return status;
    gemm::Operands operands{a, b, c, 1, 0, {}};
    return gemm::multiply(context, stream, problem, GEMM_SCALARS_HOST, alpha, beta, operands);
  });
}

gemm_status_t gemm_sgemm_batched(gemm_context_t* context, gemm_stream_t stream, gemm_op_t op_a, gemm_op_t op_b, int64_t m,
                                 int64_t n, int64_t k, const float* alpha, const float* const* a, int64_t lda,
                                 const float* const* b, int64_t ldb, const float* beta, float* const* c, int64_t ldc,
                                 int64_t batch) {
  return guarded([&] {
    const gemm_problem_t problem{op_a, op_b, m, n, k, lda, ldb, ldc, batch, 0, 0, 0};
    return gemm::multiply_arrays(context, stream, problem, GEMM_SCALARS_HOST, alpha, a, b, beta, c);
  });
}

gemm_status_t gemm_sgemm_ex(gemm_context_t* context, gemm_stream_t stream, const gemm_problem_t* problem,
                            gemm_scalars_t scalars, const float* alpha, const float* a, const float* b, const float* beta,
                            float* c) {
  if (!problem) return guarded([] { return null_argument("problem"); });
  return gemm::sgemm(context, stream, *problem, scalars, alpha, beta, {a, b, c, 1, 0, {}});
}

gemm_status_t gemm_sgemm_batched_ex(gemm_context_t* context, gemm_stream_t stream, const gemm_problem_t* problem,
                                    gemm_scalars_t scalars, const float* alpha, const float* const* a, const float* const* b,
                                    const float* beta, float* const* c) {
  return guarded([&]() -> Status {
    if (!problem) return null_argument("problem");
    return gemm::multiply_arrays(context, stream, *problem, scalars, alpha, a, b, beta, c);
  });
}

gemm_status_t gemm_set_workspace(gemm_context_t* context, void* workspace, size_t bytes) {
  return guarded([&]() -> Status {
    if (!context) return null_argument("context");
    return context->context.set_workspace(workspace, static_cast<int64_t>(bytes));
  });
}

gemm_status_t gemm_release_stream(gemm_context_t* context, gemm_stream_t stream) {
  return guarded([&]() -> Status {
    if (!context) return null_argument("context");
    return context->context.release_stream(stream);
  });
}

gemm_status_t gemm_set_policy(gemm_context_t* context, gemm_policy_t policy) {
  return guarded([&]() -> Status {
    if (!context) return null_argument("context");
    const int value = static_cast<int>(policy);
    if (value < GEMM_POLICY_AUTO || value > GEMM_POLICY_REPRODUCIBLE)
      return {GEMM_INVALID_ARGUMENT, "policy is " + std::to_string(value) + " but must be one of gemm_policy_t"};
    context->context.set_policy(policy);
    return {};
  });
}

gemm_status_t gemm_get_policy(gemm_context_t* context, gemm_policy_t* policy) {
  return guarded([&]() -> Status {
    if (!context) return null_argument("context");
    if (!policy) return null_argument("policy");
    *policy = context->context.policy();
    return {};
  });
}

gemm_status_t gemm_get_statistics(gemm_context_t* context, gemm_statistics_t* statistics) {
  return guarded([&]() -> Status {
    if (!context) return null_argument("context");
    if (!statistics) return null_argument("statistics");
    *statistics = context->context.statistics();
    return {};
  });
}

gemm_status_t gemm_reset_statistics(gemm_context_t* context) {
  return guarded([&]() -> Status {
    if (!context) return null_argument("context");
    context->context.reset_statistics();
    return {};
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
  return guarded([&] { return gemm::prepare(context, stream, problem, gemm::only_aligned(a, b, c)); });
}

gemm_status_t gemm_prepare_ex(gemm_context_t* context, gemm_stream_t stream, const gemm_problem_t* problem,
                              gemm_scalars_t scalars, int pointer_arrays, const float* a, const float* b, const float* c) {
  return guarded([&]() -> Status {
    if (Status status = gemm::check_scalars(scalars); !status.ok()) return status;
    gemm::Operands operands = pointer_arrays ? gemm::Operands{} : gemm::only_aligned(a, b, c);
    operands.indirect.scalars = scalars == GEMM_SCALARS_DEVICE;
    operands.indirect.arrays = pointer_arrays != 0;
    return gemm::prepare(context, stream, problem, operands);
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
