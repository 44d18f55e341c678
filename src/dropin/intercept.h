// What every interposed function does: serve the call, or pass it on to the real library as it came.
#pragma once

#include <cublas_v2.h>

#include <atomic>

#include "dropin/call.h"
#include "dropin/real_library.h"

namespace gemm::dropin {

// Marks that this thread is inside one of our functions. Calls that come back meanwhile, from cuBLAS's own inside or from
// another preloaded library, go straight to the file of the real library: they can neither be served twice nor go round.
class Inside {
 public:
  Inside() { ++depth_; }
  ~Inside() { --depth_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool outermost() { return depth_ == 1; }

 private:
  static thread_local int depth_;
};

// False where the call is to be passed on without a look at it: it comes from the inside, or the drop-in is off.
bool may_serve(Entry entry);

// Serves a call of `handle` and counts it. True when `status` is the caller's answer; false: pass it on.
bool serve_call(Entry entry, cublasHandle_t handle, Call call, cublasStatus_t& status);

// The same for a function without a handle's settings, on `stream`.
bool serve_on_stream(Entry entry, const Call& call, cudaStream_t stream, cublasStatus_t& status);

// The real function, or nullptr where there is none.
template <Entry kEntry, class Function>
Function* real_function() {
  static std::atomic<void*> known{nullptr};
  constexpr const char* kName = kEntryNames[static_cast<size_t>(kEntry)];
  RealLibrary& library = kEntry == Entry::lt_matmul ? real_cublaslt() : real_cublas();
  if (!Inside::outermost()) return reinterpret_cast<Function*>(library.function_in_file(kName));
  void* function = known.load(std::memory_order_acquire);
  if (!function) {
    function = library.function(kName);
    known.store(function, std::memory_order_release);
  }
  return reinterpret_cast<Function*>(function);
}

// The body of the function `kEntry` of cublas_v2.h; `describe` makes a Call of its arguments.
template <Entry kEntry, class... Arguments>
cublasStatus_t intercept(Call (*describe)(Arguments...), cublasHandle_t handle, Arguments... arguments) {
  using Function = cublasStatus_t(cublasHandle_t, Arguments...);
  const Inside inside;
  // Looked up before serving: what serving may load does not count as the program's library.
  Function* const real = real_function<kEntry, Function>();
  if (!real) return CUBLAS_STATUS_NOT_INITIALIZED;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  if (may_serve(kEntry) && serve_call(kEntry, handle, describe(arguments...), status)) return status;
  return real(handle, arguments...);
}

}  // namespace gemm::dropin
