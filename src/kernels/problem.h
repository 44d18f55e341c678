// One BLAS problem: C(m x n) = alpha * op(A)(m x k) * op(B)(k x n) + beta * C, column-major, `batch` matrices.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "kernels/kernel_config.h"

namespace gemm {

// The size and layout that tuning and dispatch look at. Lengths are in elements.
struct Problem {
  int64_t m = 0, n = 0, k = 0;
  Op op_a = Op::N, op_b = Op::N;
  int64_t lda = 0, ldb = 0, ldc = 0;
  int64_t batch = 1;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;  // between the matrices of a batch

  friend bool operator==(const Problem&, const Problem&) = default;

  int64_t rows_a() const { return op_a == Op::N ? m : k; }  // of A as it is stored
  int64_t columns_a() const { return op_a == Op::N ? k : m; }
  int64_t rows_b() const { return op_b == Op::N ? k : n; }
  int64_t columns_b() const { return op_b == Op::N ? n : k; }
  bool empty() const { return m == 0 || n == 0 || batch == 0; }
  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(batch);
  }
  // Least traffic: A and B read once, C written once (beta = 0).
  double bytes() const;
  // Elements from the first to the last one of each operand over the whole batch; 0 for an empty operand.
  int64_t extent_a() const;
  int64_t extent_b() const;
  int64_t extent_c() const;
};

// A problem with the smallest leading dimensions and strides.
Problem packed_problem(int64_t m, int64_t n, int64_t k, Op op_a = Op::N, Op op_b = Op::N, int64_t batch = 1);

// Why BLAS refuses the problem (negative size, leading dimension too small), or an empty string.
std::string why_refused(const Problem& p);

char to_char(Op op);                      // 'N' or 'T'
bool op_from_char(char c, Op& op);        // accepts n N t T c C
std::string ops_name(Op op_a, Op op_b);   // "NT"
std::string to_string(const Problem& p);  // "4096x16x4096 TN", with " batch 8" and non-packed lds where they matter
std::ostream& operator<<(std::ostream& out, const Problem& p);

}  // namespace gemm
