// The product through the C API, against an FP64 reference: one case table for the emulated device and for a GPU. Each kind
// names the row of behaviour that it guards.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "dispatch/c_api.h"
#include "dispatch/table.h"
#include "emulator/emulated_device.h"
#include "gemm/gemm.h"
#include "kernels/kernel_spec.h"
#include "product_check.h"
#include "test_files.h"

namespace gemm::test {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// What A and B are: numbers, all NaN, or no memory at all.
enum class Inputs { random, ones, nan, null };

struct ApiCase {
  Problem problem;
  float alpha = 1, beta = 0;
  Inputs inputs = Inputs::random;
  float c_fill = kNan;  // C before the call where beta is 0; random otherwise
  int offset_a = 0, offset_b = 0, offset_c = 0;
  bool conjugate = false;       // asks for C where the problem has T
  int guard = 64;               // floats before and after C that must stay; 0: the buffer ends at C's last element
  bool device_scalars = false;  // alpha and beta lie on the device
  bool arrays = false;          // the matrices are named by arrays of pointers
};

inline std::ostream& operator<<(std::ostream& out, const ApiCase& c) {
  return out << c.problem << " alpha " << c.alpha << " beta " << c.beta << " inputs " << static_cast<int>(c.inputs)
             << " offsets " << c.offset_a << "," << c.offset_b << "," << c.offset_c << (c.conjugate ? " conjugate" : "")
             << (c.device_scalars ? " device scalars" : "") << (c.arrays ? " pointer arrays" : "");
}

inline gemm_op_t c_op(Op op, bool conjugate) { return op == Op::N ? GEMM_OP_N : conjugate ? GEMM_OP_C : GEMM_OP_T; }

inline gemm_problem_t c_problem(const Problem& p) {
  return {c_op(p.op_a, false), c_op(p.op_b, false), p.m,       p.n, p.k, p.lda, p.ldb, p.ldc, p.batch,
          p.stride_a,          p.stride_b,          p.stride_c};
}

// Pointers to the matrices of a batch as an array in device memory.
template <class Float>
Buffer pointer_array(Device& device, Float* first, int64_t stride, int64_t batch) {
  std::vector<Float*> pointers;
  for (int64_t i = 0; i < batch; ++i) pointers.push_back(first + i * stride);
  Buffer array = device.allocate(pointers.size() * sizeof(Float*)).value_or_throw();
  device.copy_to_device(array.as(), pointers.data(), array.bytes());
  return array;
}

// The calls that find scalars or matrices in device memory. Waits for the product, since that memory is its own.
inline gemm_status_t call_indirectly(gemm_context_t* context, const ApiCase& c, const float* a, const float* b, float* out) {
  Device& device = context->context.device();
  const Problem& p = c.problem;
  gemm_problem_t problem = c_problem(p);
  problem.op_a = c_op(p.op_a, c.conjugate), problem.op_b = c_op(p.op_b, c.conjugate);
  const float host_scalars[] = {c.alpha, c.beta};
  const Buffer device_scalars = device.allocate(sizeof host_scalars).value_or_throw();
  device.copy_to_device(device_scalars.as(), host_scalars, sizeof host_scalars);
  const float* scalars = c.device_scalars ? device_scalars.as<float>() : host_scalars;
  const gemm_scalars_t place = c.device_scalars ? GEMM_SCALARS_DEVICE : GEMM_SCALARS_HOST;
  gemm_status_t status = GEMM_SUCCESS;
  Buffer array_a, array_b, array_c;
  if (c.arrays) {
    if (a) array_a = pointer_array(device, a, p.stride_a, p.batch);
    if (b) array_b = pointer_array(device, b, p.stride_b, p.batch);
    array_c = pointer_array(device, out, p.stride_c, p.batch);
    status = gemm_sgemm_batched_ex(context, nullptr, &problem, place, scalars, array_a.as<const float*>(),
                                   array_b.as<const float*>(), scalars + 1, array_c.as<float*>());
  } else {
    status = gemm_sgemm_ex(context, nullptr, &problem, place, scalars, a, b, scalars + 1, out);
  }
  device.synchronize(nullptr);
  return status;
}

inline gemm_status_t call(gemm_context_t* context, const ApiCase& c, const float* a, const float* b, float* out) {
  if (c.device_scalars || c.arrays) return call_indirectly(context, c, a, b, out);
  const Problem& p = c.problem;
  const gemm_op_t op_a = c_op(p.op_a, c.conjugate), op_b = c_op(p.op_b, c.conjugate);
  if (p.batch == 1)
    return gemm_sgemm(context, nullptr, op_a, op_b, p.m, p.n, p.k, &c.alpha, a, p.lda, b, p.ldb, &c.beta, out, p.ldc);
  return gemm_sgemm_strided_batched(context, nullptr, op_a, op_b, p.m, p.n, p.k, &c.alpha, a, p.lda, p.stride_a, b, p.ldb,
                                    p.stride_b, &c.beta, out, p.ldc, p.stride_c, p.batch);
}

// C before the call: `fill` in every element (random where beta reads it), `gap` between them.
inline HostMatrix c_before(const ApiCase& c) {
  const Problem& p = c.problem;
  HostMatrix before = random_matrix(p.m, p.n, p.ldc, p.stride_c, p.batch, p.extent_c(), false, 3);
  if (c.beta == 0) std::fill(before.data.begin(), before.data.end(), c.c_fill);
  return before;
}

// Device memory of C between guard words.
class GuardedC {
 public:
  GuardedC(Device& device, const HostMatrix& before, int guard, int offset)
      : device_(device), front_(static_cast<size_t>(guard + offset)), size_(before.data.size()) {
    words_.assign(front_ + size_ + static_cast<size_t>(guard), kSentinel);
    std::copy(before.data.begin(), before.data.end(), words_.begin() + static_cast<ptrdiff_t>(front_));
    buffer_ = device.allocate(std::max<size_t>(1, words_.size()) * sizeof(float)).value_or_throw();
    device.copy_to_device(buffer_.as(), words_.data(), words_.size() * sizeof(float));
  }
  float* data() const { return buffer_.as<float>() + front_; }

  // Reads C back. Returns what is wrong with the guard words, or an empty string.
  std::string read(HostMatrix& after) {
    device_.synchronize(nullptr);
    std::vector<float> now(words_.size());
    device_.copy_to_host(now.data(), buffer_.as(), now.size() * sizeof(float));
    after.data.assign(now.begin() + static_cast<ptrdiff_t>(front_), now.begin() + static_cast<ptrdiff_t>(front_ + size_));
    for (size_t i = 0; i < now.size(); ++i)
      if ((i < front_ || i >= front_ + size_) && bits(now[i]) != bits(kSentinel))
        return "guard word " + std::to_string(i) + " was written";
    return {};
  }

 private:
  static constexpr float kSentinel = -12345.678f;
  Device& device_;
  size_t front_, size_;
  std::vector<float> words_;
  Buffer buffer_;
};

// Runs the case twice. Returns why it is wrong or not repeatable, or an empty string.
inline std::string check_case(gemm_context_t* context, const ApiCase& c) {
  Device& device = context->context.device();
  const Problem& p = c.problem;
  HostMatrix a =
      random_matrix(p.rows_a(), p.columns_a(), p.lda, p.stride_a, p.batch, p.extent_a(), c.inputs == Inputs::ones, 1);
  HostMatrix b =
      random_matrix(p.rows_b(), p.columns_b(), p.ldb, p.stride_b, p.batch, p.extent_b(), c.inputs == Inputs::ones, 2);
  if (c.inputs == Inputs::nan) {
    std::fill(a.data.begin(), a.data.end(), kNan);
    std::fill(b.data.begin(), b.data.end(), kNan);
  }
  const Buffer device_a = upload(device, a, c.offset_a), device_b = upload(device, b, c.offset_b);
  const bool null = c.inputs == Inputs::null;
  const HostMatrix before = c_before(c);
  ProductCase expected{{}, p, c.alpha, c.beta};
  expected.ones = c.inputs == Inputs::ones;

  HostMatrix first;
  for (int run = 0; run < 2; ++run) {
    GuardedC out(device, before, c.guard, c.offset_c);
    const gemm_status_t status = call(context, c, null ? nullptr : device_a.as<float>() + c.offset_a,
                                      null ? nullptr : device_b.as<float>() + c.offset_b, out.data());
    if (status != GEMM_SUCCESS) return std::string(gemm_status_name(status)) + ": " + gemm_last_error();
    HostMatrix after = before;
    if (std::string why = out.read(after); !why.empty()) return why;
    if (std::string why = why_wrong(expected, a, b, before, after); !why.empty()) return why;
    if (run == 0)
      first = after;
    else if (std::memcmp(first.data.data(), after.data.data(), after.data.size() * sizeof(float)) != 0)
      return "two runs differ";
  }
  return {};
}

inline Problem with_ld(Problem p, int64_t lda, int64_t ldb, int64_t ldc) {
  p.lda = lda, p.ldb = ldb, p.ldc = ldc;
  return p;
}

inline Problem with_strides(Problem p, int64_t a, int64_t b, int64_t c) {
  p.stride_a = a, p.stride_b = b, p.stride_c = c;
  return p;
}

inline std::vector<ApiCase> beta_zero_cases() {
  std::vector<ApiCase> cases;
  for (const Problem& p :
       {packed_problem(129, 65, 17), packed_problem(64, 64, 8192, Op::T, Op::N), packed_problem(2, 2, 2, Op::N, Op::N, 3)}) {
    cases.push_back({p, 1, 0.0f});
    cases.push_back({p, 1, -0.0f, Inputs::random, kInf});
  }
  return cases;
}

inline std::vector<ApiCase> alpha_zero_cases() {
  std::vector<ApiCase> cases;
  for (const float beta : {0.0f, 1.0f, 2.0f})
    for (const Inputs inputs : {Inputs::nan, Inputs::null}) {
      cases.push_back({packed_problem(1, 4, 4), 0, beta, inputs});
      cases.push_back({with_ld(packed_problem(33, 7, 5), 40, 9, 36), -0.0f, beta, inputs});
    }
  return cases;
}

inline std::vector<ApiCase> k_zero_cases() {
  const Problem batched = with_ld(packed_problem(1, 43200, 0, Op::N, Op::N, 10), 1, 1, 1);
  const Problem single = with_ld(packed_problem(5, 3, 0), 1, 1, 5);
  return {{batched, 1, 0, Inputs::null},   {batched, 1, 0.5f, Inputs::null}, {single, 1, 0.5f, Inputs::null},
          {single, 2, 0, Inputs::null},    {single, 1, 1, Inputs::null},     {single, 1, 0, Inputs::random, kInf},
          {with_ld(single, 5, 1, 9), 3, 2}};
}

inline std::vector<ApiCase> small_and_odd_cases() {
  std::vector<ApiCase> cases;
  for (const Op op_a : {Op::N, Op::T})
    for (const Op op_b : {Op::N, Op::T}) {
      cases.push_back({packed_problem(1, 1, 9, op_a, op_b), 1, 1.5f});
      cases.push_back({packed_problem(7, 7, 7, op_a, op_b), -1, 0});
      cases.push_back({with_ld(packed_problem(7, 7, 7, op_a, op_b), 64, 64, 64), 1, 1});
      cases.push_back({packed_problem(100, 100, 100, op_a, op_b)});
      cases.push_back({packed_problem(33, 33, 33, op_a, op_b), 0.5f, -2});
      cases.push_back({packed_problem(31, 65, 33, op_a, op_b)});
      cases.push_back({packed_problem(65, 31, 17, op_a, op_b), 1, 1, Inputs::random, kNan, 0, 0, 0, true});
    }
  return cases;
}

inline std::vector<ApiCase> alignment_cases() {
  const Problem p = with_ld(packed_problem(105, 1, 107, Op::T, Op::N), 107, 107, 105);
  std::vector<ApiCase> cases;
  for (const auto& [a, b, c] : std::vector<std::array<int, 3>>{{1, 0, 0}, {0, 3, 0}, {0, 0, 1}, {1, 3, 1}, {2, 2, 2}}) {
    cases.push_back({p, 1, 0, Inputs::random, kNan, a, b, c});
    cases.push_back({with_ld(packed_problem(36, 40, 44), 36, 44, 36), 1, 1, Inputs::random, kNan, a, b, c});
  }
  // An aligned base whose second matrix is not aligned.
  cases.push_back({with_strides(packed_problem(8, 8, 8, Op::N, Op::N, 3), 65, 65, 65)});
  cases.push_back({with_strides(packed_problem(8, 8, 8, Op::T, Op::T, 3), 66, 64, 66), 1, 1});
  // One A for all, as inference does.
  cases.push_back({with_strides(packed_problem(8, 8, 8, Op::N, Op::N, 3), 0, 64, 64)});
  return cases;
}

// Each case with alpha and beta on the device, with pointer arrays, and with both, as far as it is small; on the device
// alpha cannot excuse matrices that are null.
inline std::vector<ApiCase> found_on_the_device(const std::vector<ApiCase>& cases) {
  constexpr int64_t kMostSteps = 250'000;
  std::vector<ApiCase> all;
  for (const ApiCase& c : cases)
    for (const auto& [device_scalars, arrays] : {std::pair{true, false}, {false, true}, {true, true}}) {
      ApiCase found = c;
      found.device_scalars = device_scalars;
      found.arrays = arrays;
      const Problem& p = c.problem;
      if (p.m * p.n * p.batch * std::max<int64_t>(p.k, 1) > kMostSteps) continue;
      if (device_scalars && c.inputs == Inputs::null && p.k > 0) continue;
      all.push_back(found);
    }
  return all;
}

// What every kernel with pointers on the device must get right, small enough for every family.
inline std::vector<ApiCase> indirect_kernel_cases(int64_t m, int64_t n, int64_t k, Op op_a, Op op_b) {
  Problem p = packed_problem(m, n, k, op_a, op_b, 3);
  const auto rounded = [](int64_t rows) { return (rows + 3) / 4 * 4; };
  p.lda = rounded(p.rows_a()), p.ldb = rounded(p.rows_b()), p.ldc = rounded(m);
  p.stride_a = p.lda * p.columns_a(), p.stride_b = p.ldb * p.columns_b(), p.stride_c = p.ldc * n;
  std::vector<ApiCase> cases = {{p, 0.5f, 2}, {p, 1, 0}, {p, 0, 2, Inputs::nan}, {p, 0, 0, Inputs::nan}};
  // Matrices at odd distances: their addresses do not allow what their leading dimensions do.
  cases.push_back({with_strides(p, p.stride_a + 1, p.stride_b + 2, p.stride_c + 3), 0.5f, 2});
  cases.push_back({p, 1, 1, Inputs::random, kNan, 0, 1, 0});
  return found_on_the_device(cases);
}

inline std::vector<ApiCase> bounds_cases() {
  std::vector<ApiCase> cases;
  for (const int guard : {0, 64}) {
    cases.push_back({packed_problem(20, 24, 56), 1, 0, Inputs::random, kNan, 0, 0, 0, false, guard});
    cases.push_back({packed_problem(128, 199, 125, Op::T, Op::T), 1, 0, Inputs::random, kNan, 0, 0, 0, false, guard});
    cases.push_back({with_ld(packed_problem(17, 9, 33), 17, 33, 20), 1, 0.5f, Inputs::random, kNan, 0, 0, 0, false, guard});
  }
  return cases;
}

// The same sizes in one context: each needs another variant or another epilogue.
inline std::vector<ApiCase> key_cases() {
  const Problem nn = packed_problem(64, 64, 64);
  return {{nn},
          {packed_problem(64, 64, 64, Op::T, Op::N)},
          {with_ld(nn, 65, 64, 64)},
          {nn, 1, 0, Inputs::random, kNan, 1, 0, 0},
          {nn, 1, 0, Inputs::random, kNan, 0, 0, 1},
          {nn, 1, 1},
          {nn}};
}

// NaN in every row of op(A) but the first, in the ld gap and after the end: row 0 must be exactly k.
inline std::string check_nan_leak(gemm_context_t* context, int64_t k) {
  Device& device = context->context.device();
  const Problem p = with_ld(packed_problem(16, 64, k, Op::T, Op::N), k + 3, k + 5, 16);
  HostMatrix a{std::vector<float>(static_cast<size_t>(p.lda * 16), kNan), p.lda, 0};
  HostMatrix b{std::vector<float>(static_cast<size_t>(p.ldb * 64), kNan), p.ldb, 0};
  for (int64_t i = 0; i < k; ++i) {
    a.at(i, 0, 0) = 1;
    for (int64_t j = 0; j < 64; ++j) b.at(i, j, 0) = 1;
  }
  const Buffer device_a = upload(device, a, 0), device_b = upload(device, b, 0);
  const ApiCase c{p};
  GuardedC out(device, c_before(c), 64, 0);
  if (call(context, c, device_a.as<float>(), device_b.as<float>(), out.data()) != GEMM_SUCCESS) return gemm_last_error();
  HostMatrix after = c_before(c);
  if (std::string why = out.read(after); !why.empty()) return why;
  for (int64_t j = 0; j < 64; ++j)
    if (!(after.at(0, j, 0) == static_cast<float>(k)))
      return "C(0," + std::to_string(j) + ") is " + std::to_string(after.at(0, j, 0)) + ", expected " + std::to_string(k);
  return {};
}

inline PortfolioKernel portfolio_kernel(const KernelConfig& config) {
  return {config_id(config), config, 100, 0, worst_shared_bytes(config), config.threads(), {}, {}};
}

// A table of `device` in which every problem has the given choice.
inline Table table_of(const DeviceInfo& device, const Choice& choice, const std::vector<Problem>& problems) {
  Table table;
  table.device = device;
  table.provenance = device.provenance();
  table.portfolio = {portfolio_kernel(choice.config)};
  for (const Problem& p : problems) {
    TablePoint point;
    point.problem = packed_problem(p.m, p.n, p.k, p.op_a, p.op_b, p.batch);
    point.kernel = config_id(choice.config);
    point.split_k = choice.split_k;
    point.reduction = choice.reduction;
    point.relayout = choice.relayout;
    point.time_us = {10, 9, 11, 20};
    point.tflops = p.flops() / 10e6;
    table.points.push_back(point);
  }
  return table;
}

// Makes the context use `choice` for the problems.
inline void force(gemm_context_t* context, const Choice& choice, const std::vector<Problem>& problems) {
  const TemporaryFolder folder;
  save_table(table_of(context->context.device().info(), choice, problems), folder.file("table.json")).value_or_throw();
  if (gemm_load_table(context, folder.file("table.json").c_str()) != GEMM_SUCCESS) throw Error(gemm_last_error());
}

inline std::string explanation(gemm_context_t* context, const Problem& problem) {
  const gemm_problem_t p = c_problem(problem);
  char text[4096];
  if (gemm_explain(context, &p, nullptr, nullptr, nullptr, text, sizeof text, nullptr) != GEMM_SUCCESS)
    throw Error(gemm_last_error());
  return text;
}

}  // namespace gemm::test
