// Multiplies two matrices with libdispatch and with cuBLAS, compares the results and prints both times.
//
//   sgemm_example [m n k]        exit code 0: the results agree; 1: they do not, or something failed; 77: no GPU here
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <gemm/gemm.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int kNoGpu = 77;

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(error));
}

void check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string("cuBLAS: ") + cublasGetStatusString(status));
}

// Column-major floats on the GPU.
class DeviceMatrix {
 public:
  DeviceMatrix(int64_t rows, int64_t columns) : bytes_(static_cast<size_t>(rows * columns) * sizeof(float)) {
    check(cudaMalloc(&data_, bytes_));
  }
  ~DeviceMatrix() { cudaFree(data_); }
  DeviceMatrix(const DeviceMatrix&) = delete;
  DeviceMatrix& operator=(const DeviceMatrix&) = delete;

  float* data() const { return data_; }
  void fill_random(unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> host(bytes_ / sizeof(float));
    for (float& x : host) x = uniform(random);
    check(cudaMemcpy(data_, host.data(), bytes_, cudaMemcpyHostToDevice));
  }
  std::vector<float> to_host() const {
    std::vector<float> host(bytes_ / sizeof(float));
    check(cudaMemcpy(host.data(), data_, bytes_, cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  float* data_ = nullptr;
  size_t bytes_;
};

// Mean time of one call in microseconds, after a warm-up.
double time_us(const std::function<void()>& multiply) {
  constexpr int kCalls = 20;
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  for (int i = 0; i < 3; ++i) multiply();
  check(cudaEventRecord(begin));
  for (int i = 0; i < kCalls; ++i) multiply();
  check(cudaEventRecord(end));
  check(cudaEventSynchronize(end));
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end));
  check(cudaEventDestroy(begin));
  check(cudaEventDestroy(end));
  return 1000.0 * static_cast<double>(milliseconds) / kCalls;
}

// The largest difference of the two results. Both sum k products of values below 1, in different orders.
double largest_difference(const std::vector<float>& x, const std::vector<float>& y) {
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
    if (!(difference <= largest)) largest = difference;  // NaN stays
  }
  return largest;
}

int run(int64_t m, int64_t n, int64_t k) {
  DeviceMatrix a(m, k), b(k, n), ours(m, n), theirs(m, n);
  a.fill_random(1);
  b.fill_random(2);

  gemm::Handle handle(0);
  const gemm_problem_t problem{GEMM_OP_N, GEMM_OP_N, m, n, k, m, k, m, 1, 0, 0, 0};
  std::printf("%s\n", handle.explain(problem, a.data(), b.data(), ours.data()).c_str());
  const double ours_us = time_us(
      [&] { handle.sgemm(nullptr, GEMM_OP_N, GEMM_OP_N, m, n, k, 1.0f, a.data(), m, b.data(), k, 0.0f, ours.data(), m); });

  cublasHandle_t cublas;
  check(cublasCreate(&cublas));
  const float one = 1, zero = 0;
  const double cublas_us = time_us([&] {
    check(
        cublasSgemm_64(cublas, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a.data(), m, b.data(), k, &zero, theirs.data(), m));
  });
  check(cublasDestroy(cublas));

  const double difference = largest_difference(ours.to_host(), theirs.to_host());
  // Each result may be off by 2^-24 (4 + 2 sqrt(k)) |A||B|, where |A||B| is k / 4 on average for values in [-1, 1).
  const double depth = static_cast<double>(k);
  const double allowed = 2 * std::ldexp(1.0, -24) * (4 + 2 * std::sqrt(depth)) * depth / 4;
  std::printf("libdispatch %.2f us, cuBLAS %.2f us, ratio %.3f; largest difference %.3g, allowed %.3g\n", ours_us, cublas_us,
              cublas_us / ours_us, difference, allowed);
  if (difference <= allowed) return 0;
  std::fprintf(stderr, "the results differ\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::printf("there is no NVIDIA GPU or no driver on this machine, so there is nothing to show\n");
    return kNoGpu;
  }
  int64_t size[3] = {1024, 1024, 1024};
  if (argc != 1 && argc != 4) {
    std::fprintf(stderr, "usage: sgemm_example [m n k]\n");
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    size[i - 1] = std::strtoll(argv[i], nullptr, 10);
    if (size[i - 1] < 1) {
      std::fprintf(stderr, "'%s' is not a positive size\n", argv[i]);
      return 2;
    }
  }
  try {
    return run(size[0], size[1], size[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
