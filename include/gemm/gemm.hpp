// C++17 wrapper of gemm.h: a handle that frees itself, statuses as exceptions, row-major products. Everything that gemm.h
// says about layout, ownership, streams and threads holds here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "gemm/gemm.h"

namespace gemm {

// Thrown for each status that is not GEMM_SUCCESS; what() is "GEMM_…: " and gemm_last_error().
class StatusError : public std::runtime_error {
 public:
  explicit StatusError(gemm_status_t status)
      : std::runtime_error(std::string(gemm_status_name(status)) + ": " + gemm_last_error()), status_(status) {}
  gemm_status_t status() const noexcept { return status_; }

 private:
  gemm_status_t status_;
};

// Owns a gemm_context_t. Movable; a moved-from handle may only be destroyed or assigned to.
class Handle {
 public:
  // Opens CUDA device number `device`.
  explicit Handle(int device = 0) { check(gemm_create(&context_, device)); }
  // Takes over a context.
  explicit Handle(gemm_context_t* context) noexcept : context_(context) {}
  ~Handle() { gemm_destroy(context_); }
  Handle(Handle&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(context_, other.context_);
    return *this;
  }

  gemm_context_t* get() const noexcept { return context_; }

  void load_table(const std::string& path) { check(gemm_load_table(context_, path.c_str())); }
  // The context's own workspace of that many bytes for each stream; 0: never split k.
  void set_workspace(std::size_t bytes) { check(gemm_set_workspace(context_, nullptr, bytes)); }
  // The caller's device memory.
  void set_workspace(void* workspace, std::size_t bytes) { check(gemm_set_workspace(context_, workspace, bytes)); }
  std::size_t workspace_size() const {
    std::size_t bytes = 0;
    check(gemm_get_workspace_size(context_, &bytes));
    return bytes;
  }
  // What the problem's best kernel needs.
  std::size_t workspace_size(const gemm_problem_t& problem) const {
    std::size_t bytes = 0;
    check(gemm_workspace_size(context_, &problem, &bytes));
    return bytes;
  }

  // Before a stream is destroyed, when its work is done.
  void release_stream(gemm_stream_t stream) { check(gemm_release_stream(context_, stream)); }
  void set_policy(gemm_policy_t policy) { check(gemm_set_policy(context_, policy)); }
  gemm_policy_t policy() const {
    gemm_policy_t policy = GEMM_POLICY_AUTO;
    check(gemm_get_policy(context_, &policy));
    return policy;
  }
  gemm_statistics_t statistics() const {
    gemm_statistics_t statistics{};
    check(gemm_get_statistics(context_, &statistics));
    return statistics;
  }
  void reset_statistics() { check(gemm_reset_statistics(context_)); }

  void prepare(gemm_stream_t stream, const gemm_problem_t& problem, const float* a = nullptr, const float* b = nullptr,
               const float* c = nullptr) {
    check(gemm_prepare(context_, stream, &problem, a, b, c));
  }
  // For calls with alpha and beta on the device, or with pointer arrays.
  void prepare_ex(gemm_stream_t stream, const gemm_problem_t& problem, gemm_scalars_t scalars, bool pointer_arrays,
                  const float* a = nullptr, const float* b = nullptr, const float* c = nullptr) {
    check(gemm_prepare_ex(context_, stream, &problem, scalars, pointer_arrays ? 1 : 0, a, b, c));
  }
  std::string explain(const gemm_problem_t& problem, const float* a = nullptr, const float* b = nullptr,
                      const float* c = nullptr) const {
    std::size_t length = 0;
    check(gemm_explain(context_, &problem, a, b, c, nullptr, 0, &length));
    std::string text(length + 1, '\0');
    check(gemm_explain(context_, &problem, a, b, c, text.data(), text.size(), &length));
    text.resize(length < text.size() ? length : text.size() - 1);
    return text;
  }

  // Column-major, as gemm_sgemm.
  void sgemm(gemm_stream_t stream, gemm_op_t op_a, gemm_op_t op_b, std::int64_t m, std::int64_t n, std::int64_t k,
             float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
             std::int64_t ldc) {
    check(gemm_sgemm(context_, stream, op_a, op_b, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc));
  }
  void sgemm_strided_batched(gemm_stream_t stream, gemm_op_t op_a, gemm_op_t op_b, std::int64_t m, std::int64_t n,
                             std::int64_t k, float alpha, const float* a, std::int64_t lda, std::int64_t stride_a,
                             const float* b, std::int64_t ldb, std::int64_t stride_b, float beta, float* c, std::int64_t ldc,
                             std::int64_t stride_c, std::int64_t batch) {
    check(gemm_sgemm_strided_batched(context_, stream, op_a, op_b, m, n, k, &alpha, a, lda, stride_a, b, ldb, stride_b,
                                     &beta, c, ldc, stride_c, batch));
  }
  // a, b and c: device arrays of `batch` device pointers.
  void sgemm_batched(gemm_stream_t stream, gemm_op_t op_a, gemm_op_t op_b, std::int64_t m, std::int64_t n, std::int64_t k,
                     float alpha, const float* const* a, std::int64_t lda, const float* const* b, std::int64_t ldb,
                     float beta, float* const* c, std::int64_t ldc, std::int64_t batch) {
    check(gemm_sgemm_batched(context_, stream, op_a, op_b, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc, batch));
  }
  // alpha and beta are device pointers here and below.
  void sgemm(gemm_stream_t stream, const gemm_problem_t& problem, const float* alpha, const float* a, const float* b,
             const float* beta, float* c) {
    check(gemm_sgemm_ex(context_, stream, &problem, GEMM_SCALARS_DEVICE, alpha, a, b, beta, c));
  }
  void sgemm_batched(gemm_stream_t stream, const gemm_problem_t& problem, const float* alpha, const float* const* a,
                     const float* const* b, const float* beta, float* const* c) {
    check(gemm_sgemm_batched_ex(context_, stream, &problem, GEMM_SCALARS_DEVICE, alpha, a, b, beta, c));
  }

  // Row-major: element (row, column) of X at x[row * ldx + column], so leading dimensions are at least the columns of the
  // matrix as stored. What is a row-major matrix to the caller is its transpose in column-major, and C' = op(B)' op(A)'.
  void sgemm_row_major(gemm_stream_t stream, gemm_op_t op_a, gemm_op_t op_b, std::int64_t m, std::int64_t n, std::int64_t k,
                       float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
                       std::int64_t ldc) {
    sgemm(stream, op_b, op_a, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc);
  }
  void sgemm_strided_batched_row_major(gemm_stream_t stream, gemm_op_t op_a, gemm_op_t op_b, std::int64_t m, std::int64_t n,
                                       std::int64_t k, float alpha, const float* a, std::int64_t lda, std::int64_t stride_a,
                                       const float* b, std::int64_t ldb, std::int64_t stride_b, float beta, float* c,
                                       std::int64_t ldc, std::int64_t stride_c, std::int64_t batch) {
    sgemm_strided_batched(stream, op_b, op_a, n, m, k, alpha, b, ldb, stride_b, a, lda, stride_a, beta, c, ldc, stride_c,
                          batch);
  }
  void sgemm_batched_row_major(gemm_stream_t stream, gemm_op_t op_a, gemm_op_t op_b, std::int64_t m, std::int64_t n,
                               std::int64_t k, float alpha, const float* const* a, std::int64_t lda, const float* const* b,
                               std::int64_t ldb, float beta, float* const* c, std::int64_t ldc, std::int64_t batch) {
    sgemm_batched(stream, op_b, op_a, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc, batch);
  }
  void sgemm_row_major(gemm_stream_t stream, const gemm_problem_t& problem, const float* alpha, const float* a,
                       const float* b, const float* beta, float* c) {
    sgemm(stream, transposed(problem), alpha, b, a, beta, c);
  }
  void sgemm_batched_row_major(gemm_stream_t stream, const gemm_problem_t& problem, const float* alpha,
                               const float* const* a, const float* const* b, const float* beta, float* const* c) {
    sgemm_batched(stream, transposed(problem), alpha, b, a, beta, c);
  }
  // The column-major problem that a row-major one is, for prepare, explain and workspace_size, with A and B swapped there
  // too.
  static gemm_problem_t transposed(const gemm_problem_t& row_major) {
    gemm_problem_t problem = row_major;
    std::swap(problem.op_a, problem.op_b);
    std::swap(problem.m, problem.n);
    std::swap(problem.lda, problem.ldb);
    std::swap(problem.stride_a, problem.stride_b);
    return problem;
  }

 private:
  static void check(gemm_status_t status) {
    if (status != GEMM_SUCCESS) throw StatusError(status);
  }

  gemm_context_t* context_ = nullptr;
};

}  // namespace gemm
