#include "dropin/intercept.h"

#include "dropin/handle_state.h"
#include "dropin/report.h"
#include "dropin/server.h"
#include "dropin/settings.h"

namespace gemm::dropin {
namespace {

Verdict judge_environment(const Call& call) {
  if (call.verdict != Verdict::served) return call.verdict;
  return settings().reduced_math ? Verdict::reduced_math : Verdict::served;
}

bool answer(Entry entry, Verdict verdict, cublasStatus_t& status) {
  count(entry, verdict);
  if (verdict == Verdict::failed) status = CUBLAS_STATUS_EXECUTION_FAILED;
  return verdict == Verdict::served || verdict == Verdict::failed;
}

}  // namespace

thread_local int Inside::depth_ = 0;

bool may_serve(Entry entry) {
  if (!Inside::outermost()) return false;
  if (settings().off) count(entry, Verdict::off);
  return !settings().off;
}

bool serve_on_stream(Entry entry, const Call& call, cudaStream_t stream, cublasStatus_t& status) {
  Verdict verdict = judge_environment(call);
  if (verdict == Verdict::served) verdict = server().serve(call, stream);
  return answer(entry, verdict, status);
}

bool serve_call(Entry entry, cublasHandle_t handle, Call call, cublasStatus_t& status) {
  Verdict verdict = judge_environment(call);
  cudaStream_t stream = nullptr;
  if (verdict == Verdict::served) verdict = judge(handle, call, &stream);
  if (verdict == Verdict::served) verdict = server().serve(call, stream);
  return answer(entry, verdict, status);
}

}  // namespace gemm::dropin
