#include "dropin/server.h"

#include "gemm/gemm.h"

namespace gemm::dropin {
namespace {

gemm_op_t c_op(Op op) { return op == Op::N ? GEMM_OP_N : GEMM_OP_T; }

gemm_status_t multiply(gemm_context_t* context, const Call& call, gemm_stream_t stream) {
  const Problem& p = call.problem;
  const gemm_problem_t problem{c_op(p.op_a), c_op(p.op_b), p.m,     p.n,        p.k,        p.lda,
                               p.ldb,        p.ldc,        p.batch, p.stride_a, p.stride_b, p.stride_c};
  const gemm_scalars_t scalars = call.device_scalars ? GEMM_SCALARS_DEVICE : GEMM_SCALARS_HOST;
  if (call.pointer_arrays)
    return gemm_sgemm_batched_ex(context, stream, &problem, scalars, call.alpha, static_cast<const float* const*>(call.a),
                                 static_cast<const float* const*>(call.b), call.beta, static_cast<float* const*>(call.c));
  const Operands operands{static_cast<const float*>(call.a),
                          static_cast<const float*>(call.b),
                          static_cast<float*>(call.c),
                          1,
                          0,
                          {},
                          call.epilogue,
                          call.bias};
  return sgemm(context, stream, problem, scalars, call.alpha, call.beta, operands);
}

Verdict serve_on(gemm_context_t* context, const Call& call, Stream stream) {
  if (!context) return Verdict::no_context;
  switch (multiply(context, call, static_cast<gemm_stream_t>(stream))) {
    case GEMM_SUCCESS: return Verdict::served;
    case GEMM_LAUNCH_FAILED: return Verdict::failed;
    case GEMM_NOT_SUPPORTED: return Verdict::cublas_chosen;
    default: return Verdict::refused;
  }
}

}  // namespace

Server::Gpu& Server::gpu(int device) {
  Gpu& found = gpus_[static_cast<size_t>(device)];
  std::call_once(found.opened, [&] { found.context = open_(device); });
  return found;
}

Verdict Server::serve(const Call& call, Stream stream) noexcept {
  try {
    const std::optional<int> device = locate_(stream);
    if (!device || *device < 0 || *device >= kMaxDevices) return Verdict::other_context;
    return serve_on(gpu(*device).context, call, stream);
  } catch (...) {
    // No memory for a new problem, for one: nothing was launched yet, for the C API itself does not throw.
    return Verdict::refused;
  }
}

}  // namespace gemm::dropin
