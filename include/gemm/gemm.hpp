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

  void prepare(gemm_stream_t stream, const gemm_problem_t& problem, const float* a = nullptr, const float* b = nullptr,
               const float* c = nullptr) {
    check(gemm_prepare(context_, stream, &problem, a, b, c));
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

 private:
  static void check(gemm_status_t status) {
    if (status != GEMM_SUCCESS) throw StatusError(status);
  }

  gemm_context_t* context_ = nullptr;
};

}  // namespace gemm
