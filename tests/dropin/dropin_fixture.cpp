#include "dropin_fixture.h"

#include <dlfcn.h>

#include "dropin/report.h"

namespace gemm::dropin {
namespace {
Server* used_server = nullptr;
}
Server& server() { return *used_server; }
}  // namespace gemm::dropin

namespace gemm::test {
namespace {

std::string name_of(Verdict verdict) { return dropin::kVerdictNames[static_cast<size_t>(verdict)]; }

}  // namespace

std::string name_of(Entry entry) { return kEntryNames[static_cast<size_t>(entry)]; }

void use_server(dropin::Server& server) { dropin::used_server = &server; }

gemm_context_t* emulated_context(EmulatorOptions options) {
  return make_context(make_emulated_device(std::move(options)), {.find_table = false, .cublas_is_callers = true});
}

void Dropin::SetUpTestSuite() {
  for (const char* variable : {"GEMM_DROPIN", "GEMM_DROPIN_REPORT", "NVIDIA_TF32_OVERRIDE"}) unsetenv(variable);
  // As Python opens its modules: no symbol of these is in the global scope.
  fake_cublas_ = dlopen(GEMM_FAKE_CUBLAS, RTLD_NOW | RTLD_LOCAL);
  fake_cublaslt_ = dlopen(GEMM_FAKE_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
  context_ = emulated_context();
}

void Dropin::SetUp() {
  ASSERT_TRUE(fake_cublas_ && fake_cublaslt_) << dlerror();
  use_server(server_);
  forwarded_calls();
}

std::string Dropin::forwarded_calls() {
  std::string calls;
  for (const auto& [library, name] : {std::pair{fake_cublas_, "fake_cublas_calls"}, {fake_cublaslt_, "fake_cublaslt_calls"}})
    calls += reinterpret_cast<const char* (*)()>(dlsym(library, name))();
  return calls;
}

std::string Dropin::check_served(Request r, bool shared_bias) {
  const ApiCase c{r.problem, r.alpha, r.beta};
  Device& device = context_->context.device();
  const Problem& p = r.problem;
  const HostMatrix a = random_matrix(p.rows_a(), p.columns_a(), p.lda, p.stride_a, p.batch, p.extent_a(), false, 1);
  const HostMatrix b = random_matrix(p.rows_b(), p.columns_b(), p.ldb, p.stride_b, p.batch, p.extent_b(), false, 2);
  const Buffer device_a = upload(device, a, 0), device_b = upload(device, b, 0);
  ProductCase expected{{}, p, r.alpha, r.beta};
  expected.epilogue = r.epilogue;
  expected.shared_bias = shared_bias;
  const HostMatrix bias = random_bias(expected);
  const Buffer device_bias = upload(device, bias, 1);
  if (has_bias(r.epilogue)) r.bias = {device_bias.as<float>() + 1, bias.stride};
  const HostMatrix before = c_before(c);
  GuardedC out(device, before, 64, 0);
  const uint64_t served = dropin::calls(r.entry, Verdict::served);
  const cublasStatus_t status = call(r, device_a.as<float>(), device_b.as<float>(), out.data());
  if (status != CUBLAS_STATUS_SUCCESS) return "status " + std::to_string(status);
  if (const std::string calls = forwarded_calls(); !calls.empty()) return "forwarded: " + calls;
  if (dropin::calls(r.entry, Verdict::served) != served + 1) return "not counted";
  HostMatrix after = before;
  if (std::string why = out.read(after); !why.empty()) return why;
  return why_wrong(expected, a, b, before, after, bias);
}

std::string Dropin::check_forwarded(const Request& r, Verdict expected) {
  std::vector<float> memory(4096, 7.0f);
  const uint64_t before = dropin::calls(r.entry, expected);
  const cublasStatus_t status = call(r, memory.data(), memory.data() + 1024, memory.data() + 2048);
  const std::string calls = forwarded_calls();
  if (dropin::calls(r.entry, expected) != before + 1) return "not counted as " + name_of(expected);
  if (calls.rfind(name_of(r.entry) + (r.entry == Entry::lt_matmul ? " " : "("), 0) != 0)
    return "the fake was asked " + calls;
  const bool refused = r.problem.m < 0 && r.entry != Entry::lt_matmul;
  if (status != (refused ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS)) return "status " + std::to_string(status);
  for (const float word : memory)
    if (word != 7.0f) return "memory was touched";
  return {};
}

}  // namespace gemm::test
