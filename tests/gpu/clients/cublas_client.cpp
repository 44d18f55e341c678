// A small program that uses cuBLAS the way programs do, linked with it as usual.
//
//   cublas_client             lists the steps
//   cublas_client STEP        does one, checks it against cublasDgemm and prints a JSON line with error and time; 77: no GPU
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int kNoGpu = 77;
constexpr double kEps = 5.97e-8;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "cublas_client: %s failed\n", what.c_str());
  std::exit(1);
}
void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(std::string(what) + ": " + cudaGetErrorString(error));
}
void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(std::string(what) + ": " + cublasGetStatusString(status));
}

template <class T>
struct DeviceArray {
  explicit DeviceArray(size_t count) : size(count) { check(cudaMalloc(&data, count * sizeof(T)), "cudaMalloc"); }
  explicit DeviceArray(const std::vector<T>& host) : DeviceArray(host.size()) {
    check(cudaMemcpy(data, host.data(), size * sizeof(T), cudaMemcpyHostToDevice), "copying to the GPU");
  }
  ~DeviceArray() { cudaFree(data); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  std::vector<T> on_host() const {
    std::vector<T> host(size);
    check(cudaMemcpy(host.data(), data, size * sizeof(T), cudaMemcpyDeviceToHost), "copying from the GPU");
    return host;
  }
  T* data = nullptr;
  size_t size;
};

// C = A^T * B, packed, m x n x k, `batch` times.
struct Sizes {
  int m, n, k, batch = 1;
  size_t a() const { return size_t{1} * m * k * batch; }
  size_t b() const { return size_t{1} * k * n * batch; }
  size_t c() const { return size_t{1} * m * n * batch; }
};

struct Operands {
  cublasHandle_t handle;
  cublasLtHandle_t light;
  const float* a;
  const float* b;
  float* c;
  const float* bias;  // m numbers
};

struct Step {
  Sizes sizes;
  std::function<cublasStatus_t(const Sizes&, const Operands&)> run;
  bool bias_relu = false;  // C = max(A^T * B + bias, 0)
};

const float kOne = 1, kZero = 0;

cublasStatus_t sgemm(const Sizes& s, const Operands& o) {
  return cublasSgemm(o.handle, CUBLAS_OP_T, CUBLAS_OP_N, s.m, s.n, s.k, &kOne, o.a, s.k, o.b, s.k, &kZero, o.c, s.m);
}

cublasStatus_t sgemm_64(const Sizes& s, const Operands& o) {
  return cublasSgemm_64(o.handle, CUBLAS_OP_T, CUBLAS_OP_N, s.m, s.n, s.k, &kOne, o.a, s.k, o.b, s.k, &kZero, o.c, s.m);
}

cublasStatus_t strided(const Sizes& s, const Operands& o) {
  const long long a = 1LL * s.m * s.k, b = 1LL * s.k * s.n, c = 1LL * s.m * s.n;
  return cublasSgemmStridedBatched(o.handle, CUBLAS_OP_T, CUBLAS_OP_N, s.m, s.n, s.k, &kOne, o.a, s.k, a, o.b, s.k, b,
                                   &kZero, o.c, s.m, c, s.batch);
}

cublasStatus_t gemm_ex(const Sizes& s, const Operands& o) {
  return cublasGemmEx(o.handle, CUBLAS_OP_T, CUBLAS_OP_N, s.m, s.n, s.k, &kOne, o.a, CUDA_R_32F, s.k, o.b, CUDA_R_32F, s.k,
                      &kZero, o.c, CUDA_R_32F, s.m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

// The arrays of pointers are made once.
cublasStatus_t batched(const Sizes& s, const Operands& o) {
  static DeviceArray<const float*>* a = nullptr;
  static DeviceArray<const float*>* b = nullptr;
  static DeviceArray<float*>* c = nullptr;
  if (!a) {
    std::vector<const float*> all_a, all_b;
    std::vector<float*> all_c;
    for (long long i = 0; i < s.batch; ++i) {
      all_a.push_back(o.a + i * s.m * s.k);
      all_b.push_back(o.b + i * s.k * s.n);
      all_c.push_back(o.c + i * s.m * s.n);
    }
    a = new DeviceArray<const float*>(all_a);
    b = new DeviceArray<const float*>(all_b);
    c = new DeviceArray<float*>(all_c);
  }
  return cublasSgemmBatched(o.handle, CUBLAS_OP_T, CUBLAS_OP_N, s.m, s.n, s.k, &kOne, a->data, s.k, b->data, s.k, &kZero,
                            c->data, s.m, s.batch);
}

cublasStatus_t device_scalars(const Sizes& s, const Operands& o) {
  static const auto* const scalars = new DeviceArray<float>({kOne, kZero});
  check(cublasSetPointerMode(o.handle, CUBLAS_POINTER_MODE_DEVICE), "cublasSetPointerMode");
  const cublasStatus_t status = cublasSgemm(o.handle, CUBLAS_OP_T, CUBLAS_OP_N, s.m, s.n, s.k, scalars->data, o.a, s.k, o.b,
                                            s.k, scalars->data + 1, o.c, s.m);
  check(cublasSetPointerMode(o.handle, CUBLAS_POINTER_MODE_HOST), "cublasSetPointerMode");
  return status;
}

cublasStatus_t light_with(const Sizes& s, const Operands& o, bool bias_relu) {
  static cublasLtMatmulDesc_t operation = nullptr;
  static cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  if (!operation) {
    const cublasOperation_t transpose = CUBLAS_OP_T;
    check(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    check(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose), "TRANSA");
    if (bias_relu) {
      const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
      check(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue),
            "EPILOGUE");
      check(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &o.bias, sizeof o.bias), "BIAS");
    }
    check(cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, s.k, s.m, s.k), "layout of A");
    check(cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, s.k, s.n, s.k), "layout of B");
    check(cublasLtMatrixLayoutCreate(&c, CUDA_R_32F, s.m, s.n, s.m), "layout of C");
  }
  return cublasLtMatmul(o.light, operation, &kOne, o.a, a, o.b, b, &kZero, o.c, c, o.c, c, nullptr, nullptr, 0, nullptr);
}

cublasStatus_t light(const Sizes& s, const Operands& o) { return light_with(s, o, false); }
cublasStatus_t light_bias_relu(const Sizes& s, const Operands& o) { return light_with(s, o, true); }

const std::map<std::string, Step>& steps() {
  static const std::map<std::string, Step> all = {
      {"Sgemm 1024x1024x1024", {{1024, 1024, 1024}, sgemm}},
      {"Sgemm_64 1111x333x2000", {{1111, 333, 2000}, sgemm_64}},
      {"SgemmStridedBatched 64 of 200x100x300", {{200, 100, 300, 64}, strided}},
      {"SgemmBatched 64 of 128x128x256", {{128, 128, 256, 64}, batched}},
      {"Sgemm 1000x1000x1000, scalars on the GPU", {{1000, 1000, 1000}, device_scalars}},
      {"GemmEx 2048x256x1024", {{2048, 256, 1024}, gemm_ex}},
      {"LtMatmul 1024x512x768", {{1024, 512, 768}, light}},
      {"LtMatmul 1000x511x768, bias and ReLU", {{1000, 511, 768}, light_bias_relu, true}},
  };
  return all;
}

// A^T * B in FP64.
std::vector<double> exact_product(cublasHandle_t handle, const Sizes& s, const std::vector<double>& a,
                                  const std::vector<double>& b) {
  const double one = 1, zero = 0;
  const DeviceArray<double> device_a(a), device_b(b), c(s.c());
  check(cublasDgemmStridedBatched(handle, CUBLAS_OP_T, CUBLAS_OP_N, s.m, s.n, s.k, &one, device_a.data, s.k, 1LL * s.m * s.k,
                                  device_b.data, s.k, 1LL * s.k * s.n, &zero, c.data, s.m, 1LL * s.m * s.n, s.batch),
        "cublasDgemmStridedBatched");
  return c.on_host();
}

std::vector<double> magnitudes(const std::vector<float>& x) {
  std::vector<double> all(x.size());
  std::transform(x.begin(), x.end(), all.begin(), [](float value) { return std::fabs(static_cast<double>(value)); });
  return all;
}

void add_bias_relu(const std::vector<float>& bias, std::vector<double>& exact, std::vector<double>& magnitude) {
  for (size_t i = 0; i < exact.size(); ++i) {
    const double added = bias[i % bias.size()];
    exact[i] = std::max(exact[i] + added, 0.0);
    magnitude[i] += std::fabs(added);
  }
}

std::vector<float> random_numbers(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> all(count);
  std::generate(all.begin(), all.end(), [&] { return uniform(random); });
  return all;
}

// Median over samples of many calls each, in milliseconds for one call.
double median_ms(const std::function<void()>& run) {
  const auto sample = [&](int repeats) {
    check(cudaDeviceSynchronize(), "the product");
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) run();
    check(cudaDeviceSynchronize(), "the product");
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() / repeats;
  };
  sample(3);
  const int repeats = std::clamp(static_cast<int>(4 / sample(10)), 1, 500);
  std::vector<double> samples(15);
  for (double& ms : samples) ms = sample(repeats);
  std::nth_element(samples.begin(), samples.begin() + 7, samples.end());
  return samples[7];
}

int run_step(const Step& step) {
  const Sizes& s = step.sizes;
  cublasHandle_t handle = nullptr;
  cublasLtHandle_t light_handle = nullptr;
  check(cublasCreate(&handle), "cublasCreate");
  check(cublasLtCreate(&light_handle), "cublasLtCreate");
  const std::vector<float> a = random_numbers(s.a(), 1), b = random_numbers(s.b(), 2);
  const std::vector<float> bias = random_numbers(static_cast<size_t>(s.m), 3);
  const DeviceArray<float> device_a(a), device_b(b), c(s.c()), device_bias(bias);
  check(cudaMemset(c.data, 0xff, s.c() * sizeof(float)), "filling C with NaN");
  const Operands operands{handle, light_handle, device_a.data, device_b.data, c.data, device_bias.data};
  check(step.run(s, operands), "the product");
  check(cudaDeviceSynchronize(), "the product");

  const std::vector<float> result = c.on_host();
  std::vector<double> exact = exact_product(handle, s, {a.begin(), a.end()}, {b.begin(), b.end()});
  std::vector<double> magnitude = exact_product(handle, s, magnitudes(a), magnitudes(b));
  if (step.bias_relu) add_bias_relu(bias, exact, magnitude);
  double worst = 0, sum = 0;
  for (size_t i = 0; i < result.size(); ++i) {
    const double bound = kEps * (4 + 2 * std::sqrt(s.k)) * magnitude[i] + 1e-36;
    const double scaled = std::fabs(result[i] - exact[i]) / bound;
    worst = scaled <= worst ? worst : std::isnan(scaled) ? 1e30 : scaled;
    sum += exact[i];
  }
  const double ms = median_ms([&] { check(step.run(s, operands), "the product"); });
  std::printf("{\"kind\": \"bound\", \"error\": %.17g, \"fingerprint\": %.17g, \"ms\": %.6f}\n", worst, sum, ms);
  cublasLtDestroy(light_handle);
  cublasDestroy(handle);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    for (const auto& [name, step] : steps()) std::printf("%s\n", name.c_str());
    return 0;
  }
  const auto found = steps().find(argv[1]);
  if (found == steps().end()) fail(std::string("finding the step ") + argv[1]);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return kNoGpu;
  return run_step(found->second);
}
