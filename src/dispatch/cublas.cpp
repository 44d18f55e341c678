#include "dispatch/cublas.h"

#include <cublas_v2.h>

#include <functional>
#include <mutex>

#include "kernels/dynamic_library.h"

namespace gemm {
namespace {

struct Functions {
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasGetVersion_v2) get_version;
  decltype(&cublasGetStatusString) status_string;
  decltype(&cublasSetStream_v2) set_stream;
  decltype(&cublasSetWorkspace_v2) set_workspace;
  decltype(&cublasSetMathMode) set_math_mode;
  decltype(&cublasSgemm_v2_64) sgemm;
  decltype(&cublasSgemmStridedBatched_64) sgemm_strided_batched;
  decltype(&cublasSgemmBatched_64) sgemm_batched;
  decltype(&cublasSetPointerMode_v2) set_pointer_mode;
};

struct Library {
  DynamicLibrary file;
  Functions functions;
};

template <class Function>
bool find(const DynamicLibrary& file, const char* name, Function*& function) {
  function = file.symbol<Function>(name);
  return function != nullptr;
}

Result<Library> open_library() {
  Result<DynamicLibrary> file =
      DynamicLibrary::open({"libcublas.so.13", "libcublas.so.12", "libcublas.so"},
                           "Install the CUDA toolkit's cuBLAS or add its folder to LD_LIBRARY_PATH");
  if (!file) return Failure{file.error()};
  Functions f{};
  const bool all =
      find(*file, "cublasCreate_v2", f.create) && find(*file, "cublasDestroy_v2", f.destroy) &&
      find(*file, "cublasGetVersion_v2", f.get_version) && find(*file, "cublasGetStatusString", f.status_string) &&
      find(*file, "cublasSetStream_v2", f.set_stream) && find(*file, "cublasSetWorkspace_v2", f.set_workspace) &&
      find(*file, "cublasSetMathMode", f.set_math_mode) && find(*file, "cublasSgemm_v2_64", f.sgemm) &&
      find(*file, "cublasSgemmStridedBatched_64", f.sgemm_strided_batched) &&
      find(*file, "cublasSgemmBatched_64", f.sgemm_batched) && find(*file, "cublasSetPointerMode_v2", f.set_pointer_mode);
  if (!all) return Failure{"cuBLAS at '" + file->path() + "' lacks 64-bit functions; CUDA 12 or newer is needed"};
  return Library{*file, f};
}

// Opened once and kept until the process ends, as cuBLAS requires of whoever has used it. A failure is remembered too.
const Result<Library>& library() {
  static const auto* opened = new Result<Library>(open_library());
  return *opened;
}

cublasOperation_t operation(Op op) { return op == Op::N ? CUBLAS_OP_N : CUBLAS_OP_T; }

}  // namespace

struct Cublas::State {
  State(Device& on, const Functions& from) : device(on), functions(from) {}
  ~State() {
    if (!handle) return;
    try {
      device.with_current([&] { functions.destroy(handle); });
    } catch (const Error&) {
      // The GPU's context is broken, and the handle is gone with it.
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Failure when cuBLAS refused `what`.
  Result<bool> check(cublasStatus_t status, const std::string& what) const {
    if (status == CUBLAS_STATUS_SUCCESS) return true;
    return Failure{"cuBLAS: " + what + " failed: " + functions.status_string(status)};
  }

  Device& device;
  Functions functions;
  cublasHandle_t handle = nullptr;
  std::mutex calls;  // a handle has one current stream
};

Cublas::Cublas(std::unique_ptr<State> state) : state_(std::move(state)) {}
Cublas::~Cublas() = default;

Result<std::unique_ptr<Cublas>> Cublas::open(Device& device) {
  if (device.info().emulated) return Failure{"the emulated device has no cuBLAS"};
  if (!library()) return Failure{library().error()};
  auto state = std::make_unique<State>(device, library()->functions);
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  device.with_current([&] { status = state->functions.create(&state->handle); });
  Result<bool> done = state->check(status, "creating a handle");
  if (done) done = state->check(state->functions.set_math_mode(state->handle, CUBLAS_DEFAULT_MATH), "choosing FP32");
  if (!done) return Failure{done.error()};
  return std::unique_ptr<Cublas>(new Cublas(std::move(state)));
}

Result<bool> Cublas::sgemm(const Problem& p, const Operands& o, Stream stream, Workspace workspace) {
  const Functions& f = state_->functions;
  const cublasHandle_t handle = state_->handle;
  const cublasOperation_t a = operation(p.op_a), b = operation(p.op_b);
  const Indirection& indirect = o.indirect;
  const float* alpha = indirect.scalars ? indirect.alpha : &o.alpha;
  const float* beta = indirect.scalars ? indirect.beta : &o.beta;
  const std::lock_guard<std::mutex> lock(state_->calls);
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  const auto enqueue = [&] {
    status = f.set_stream(handle, static_cast<cudaStream_t>(stream));
    // Behind set_stream, which goes back to cuBLAS's own workspace.
    if (status == CUBLAS_STATUS_SUCCESS && workspace.bytes > 0)
      status = f.set_workspace(handle, workspace.data, workspace.bytes);
    if (status == CUBLAS_STATUS_SUCCESS)
      status = f.set_pointer_mode(handle, indirect.scalars ? CUBLAS_POINTER_MODE_DEVICE : CUBLAS_POINTER_MODE_HOST);
    if (status != CUBLAS_STATUS_SUCCESS) return;
    if (indirect.arrays)
      status = f.sgemm_batched(handle, a, b, p.m, p.n, p.k, alpha, indirect.a, p.lda, indirect.b, p.ldb, beta, indirect.c,
                               p.ldc, p.batch);
    else if (p.batch == 1)
      status = f.sgemm(handle, a, b, p.m, p.n, p.k, alpha, o.a, p.lda, o.b, p.ldb, beta, o.c, p.ldc);
    else
      status = f.sgemm_strided_batched(handle, a, b, p.m, p.n, p.k, alpha, o.a, p.lda, p.stride_a, o.b, p.ldb, p.stride_b,
                                       beta, o.c, p.ldc, p.stride_c, p.batch);
  };
  state_->device.with_current(std::ref(enqueue));  // a reference, since a copy of so many captures would be allocated
  if (status == CUBLAS_STATUS_SUCCESS) return true;
  return state_->check(status, "the product " + to_string(p));
}

std::string Cublas::version() const {
  int number = 0;
  state_->functions.get_version(state_->handle, &number);
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." + std::to_string(number % 100);
}

std::string Cublas::path() const { return library()->file.path(); }

}  // namespace gemm
