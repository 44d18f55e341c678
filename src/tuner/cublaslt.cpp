#include "tuner/cublaslt.h"

#include <cublasLt.h>

#include "kernels/dynamic_library.h"
#include "tuner/candidates.h"

namespace gemm {
namespace {

// The entry points that are used, by the types of the toolkit's header.
struct Functions {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) get_heuristic;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) algo_get;
};

// Fills `function` from the library; false when the library does not have it.
template <class Function>
bool find(const DynamicLibrary& library, const char* name, Function*& function) {
  function = library.symbol<Function>(name);
  return function != nullptr;
}

bool find_all(const DynamicLibrary& l, Functions& f) {
  return find(l, "cublasLtCreate", f.create) && find(l, "cublasLtDestroy", f.destroy) &&
         find(l, "cublasLtMatmul", f.matmul) && find(l, "cublasLtMatmulDescCreate", f.desc_create) &&
         find(l, "cublasLtMatmulDescDestroy", f.desc_destroy) && find(l, "cublasLtMatmulDescSetAttribute", f.desc_set) &&
         find(l, "cublasLtMatrixLayoutCreate", f.layout_create) &&
         find(l, "cublasLtMatrixLayoutDestroy", f.layout_destroy) &&
         find(l, "cublasLtMatrixLayoutSetAttribute", f.layout_set) &&
         find(l, "cublasLtMatmulPreferenceCreate", f.preference_create) &&
         find(l, "cublasLtMatmulPreferenceDestroy", f.preference_destroy) &&
         find(l, "cublasLtMatmulPreferenceSetAttribute", f.preference_set) &&
         find(l, "cublasLtMatmulAlgoGetHeuristic", f.get_heuristic) &&
         find(l, "cublasLtMatmulAlgoConfigGetAttribute", f.algo_get);
}

// Opened once and kept until the process ends, as the library requires of whoever has used it. A failure is remembered too.
const Result<Functions>& functions() {
  static const auto* opened = new Result<Functions>([]() -> Result<Functions> {
    Result<DynamicLibrary> library = DynamicLibrary::open({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
                                                          "install cuBLAS of the CUDA toolkit");
    if (!library) return Failure{library.error()};
    static const DynamicLibrary kept = *library;
    Functions f{};
    if (!find_all(kept, f))
      return Failure{"cuBLASLt at '" + kept.path() + "' lacks entry points; CUDA 12 or newer is needed"};
    return f;
  }());
  return *opened;
}

}  // namespace

struct CublasLt::State {
  Device& device;
  Functions f;
  Buffer workspace;
  cublasLtHandle_t handle = nullptr;

  ~State() {
    if (handle == nullptr) return;
    try {
      device.with_current([&] { f.destroy(handle); });
    } catch (const Error&) {
      // The GPU's context is broken, and the handle is gone with it.
    }
  }
};

namespace {

// cuBLASLt's description of a problem; shared by its algorithms.
struct Descriptors {
  const Functions* f = nullptr;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;

  ~Descriptors() {
    if (product != nullptr) f->desc_destroy(product);
    for (cublasLtMatrixLayout_t layout : {a, b, c})
      if (layout != nullptr) f->layout_destroy(layout);
  }

  bool make_layout(cublasLtMatrixLayout_t& layout, int64_t rows, int64_t columns, int64_t ld, int64_t stride,
                   int64_t batch) {
    const auto count = static_cast<int32_t>(batch);
    return f->layout_create(&layout, CUDA_R_32F, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), ld) ==
               CUBLAS_STATUS_SUCCESS &&
           f->layout_set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count) == CUBLAS_STATUS_SUCCESS &&
           f->layout_set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride) ==
               CUBLAS_STATUS_SUCCESS;
  }

  bool make(const Problem& p) {
    const cublasOperation_t op_a = p.op_a == Op::T ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t op_b = p.op_b == Op::T ? CUBLAS_OP_T : CUBLAS_OP_N;
    return f->desc_create(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
           f->desc_set(product, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a) == CUBLAS_STATUS_SUCCESS &&
           f->desc_set(product, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b) == CUBLAS_STATUS_SUCCESS &&
           make_layout(a, p.rows_a(), p.columns_a(), p.lda, p.stride_a, p.batch) &&
           make_layout(b, p.rows_b(), p.columns_b(), p.ldb, p.stride_b, p.batch) &&
           make_layout(c, p.m, p.n, p.ldc, p.stride_c, p.batch);
  }
};

int attribute(const Functions& f, const cublasLtMatmulAlgo_t& algo, cublasLtMatmulAlgoConfigAttributes_t which) {
  uint32_t value = 0;
  size_t written = 0;
  f.algo_get(&algo, which, &value, sizeof value, &written);
  return static_cast<int>(value & (written >= 4 ? 0xffffffffu : 0xffffu));
}

}  // namespace

class BoundAlgorithm : public CublasLt::Algorithm {
 public:
  BoundAlgorithm(std::shared_ptr<CublasLt::State> state, std::shared_ptr<Descriptors> descriptors,
                 const cublasLtMatmulAlgo_t& algo)
      : state_(std::move(state)), descriptors_(std::move(descriptors)), algo_(algo) {}

  Result<bool> enqueue(const Operands& o, Stream stream) override {
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    state_->device.with_current([&] {
      status = state_->f.matmul(state_->handle, descriptors_->product, &o.alpha, o.a, descriptors_->a, o.b, descriptors_->b,
                                &o.beta, o.c, descriptors_->c, o.c, descriptors_->c, &algo_, state_->workspace.as(),
                                state_->workspace.bytes(), static_cast<cudaStream_t>(stream));
    });
    if (status != CUBLAS_STATUS_SUCCESS) return Failure{"cublasLtMatmul failed with status " + std::to_string(status)};
    return true;
  }

  std::string name() const override {
    const Functions& f = state_->f;
    return "algorithm " + std::to_string(attribute(f, algo_, CUBLASLT_ALGO_CONFIG_ID)) + " tile " +
           std::to_string(attribute(f, algo_, CUBLASLT_ALGO_CONFIG_TILE_ID)) + " stages " +
           std::to_string(attribute(f, algo_, CUBLASLT_ALGO_CONFIG_STAGES_ID)) + " split_k " +
           std::to_string(attribute(f, algo_, CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
  }

 private:
  std::shared_ptr<CublasLt::State> state_;
  std::shared_ptr<Descriptors> descriptors_;
  cublasLtMatmulAlgo_t algo_;
};

CublasLt::CublasLt(std::shared_ptr<State> state) : state_(std::move(state)) {}
CublasLt::~CublasLt() = default;

Result<std::unique_ptr<CublasLt>> CublasLt::open(Device& device) {
  if (device.info().emulated) return Failure{"the emulated device has no cuBLASLt"};
  if (!functions()) return Failure{functions().error()};
  Result<Buffer> workspace = device.allocate(static_cast<size_t>(kWorkspaceBytes));
  if (!workspace) return Failure{workspace.error()};
  const std::shared_ptr<State> state(new State{device, *functions(), *workspace});
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  device.with_current([&] { status = state->f.create(&state->handle); });
  if (status != CUBLAS_STATUS_SUCCESS) return Failure{"cublasLtCreate failed with status " + std::to_string(status)};
  return std::unique_ptr<CublasLt>(new CublasLt(state));
}

std::vector<std::shared_ptr<CublasLt::Algorithm>> CublasLt::heuristics(const Problem& problem, int most) {
  const Functions& f = state_->f;
  auto descriptors = std::make_shared<Descriptors>();
  descriptors->f = &f;
  cublasLtMatmulPreference_t preference = nullptr;
  if (!descriptors->make(problem) || f.preference_create(&preference) != CUBLAS_STATUS_SUCCESS) return {};
  const size_t workspace_bytes = state_->workspace.bytes();
  f.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes, sizeof workspace_bytes);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(most));
  int found = 0;
  state_->device.with_current([&] {
    f.get_heuristic(state_->handle, descriptors->product, descriptors->a, descriptors->b, descriptors->c, descriptors->c,
                    preference, most, results.data(), &found);
  });
  f.preference_destroy(preference);
  results.resize(static_cast<size_t>(found));
  std::vector<std::shared_ptr<Algorithm>> algorithms;
  for (const cublasLtMatmulHeuristicResult_t& result : results)
    if (result.state == CUBLAS_STATUS_SUCCESS)
      algorithms.push_back(std::make_shared<BoundAlgorithm>(state_, descriptors, result.algo));
  return algorithms;
}

}  // namespace gemm
