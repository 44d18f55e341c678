#include "dropin/server.h"

#include "gemm/gemm.h"

namespace gemm::dropin {
namespace {

gemm_op_t c_op(Op op) { return op == Op::N ? GEMM_OP_N : GEMM_OP_T; }

gemm_status_t multiply(gemm_context_t* context, const Call& call, Stream stream) {
  const Problem& p = call.problem;
  return gemm_sgemm_strided_batched(context, static_cast<gemm_stream_t>(stream), c_op(p.op_a), c_op(p.op_b), p.m, p.n, p.k,
                                    call.alpha, call.a, p.lda, p.stride_a, call.b, p.ldb, p.stride_b, call.beta, call.c,
                                    p.ldc, p.stride_c, p.batch);
}

}  // namespace

Server::Gpu& Server::gpu(int device) {
  Gpu& found = gpus_[static_cast<size_t>(device)];
  std::call_once(found.opened, [&] { found.context = open_(device); });
  return found;
}

Verdict Server::serve_on(Gpu& gpu, const Call& call, Stream stream) {
  if (!gpu.context) return Verdict::no_context;
  // cuBLAS is left to the caller's own handle, with its workspace and settings.
  if (!gpu.own_kernels.serve(gpu.context->context, call)) return Verdict::cublas_chosen;
  switch (multiply(gpu.context, call, stream)) {
    case GEMM_SUCCESS: return Verdict::served;
    case GEMM_LAUNCH_FAILED: return Verdict::failed;
    default: return Verdict::refused;
  }
}

Verdict Server::serve(const Call& call, Stream stream) noexcept {
  try {
    const std::optional<int> device = locate_(stream);
    if (!device || *device < 0 || *device >= kMaxDevices) return Verdict::other_context;
    return serve_on(gpu(*device), call, stream);
  } catch (...) {
    // No memory for a new problem, for one: nothing was launched yet, for the C API itself does not throw.
    return Verdict::refused;
  }
}

}  // namespace gemm::dropin
