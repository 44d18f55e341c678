#include "kernels/problem.h"

#include <algorithm>
#include <ostream>

namespace gemm {
namespace {

int64_t extent(int64_t rows, int64_t columns, int64_t ld, int64_t stride, int64_t batch) {
  if (rows == 0 || columns == 0 || batch == 0) return 0;
  return (batch - 1) * stride + (columns - 1) * ld + rows;
}

std::string refused_ld(const char* name, int64_t ld, int64_t rows) {
  if (ld >= std::max<int64_t>(1, rows)) return {};
  return std::string(name) + " is " + std::to_string(ld) + " but must be at least " +
         std::to_string(std::max<int64_t>(1, rows)) + ", the rows of the matrix as stored";
}

}  // namespace

double Problem::bytes() const {
  const auto d = [](int64_t x) { return static_cast<double>(x); };
  return 4.0 * d(batch) * (d(m) * d(k) + d(k) * d(n) + d(m) * d(n));
}

int64_t Problem::extent_a() const { return extent(rows_a(), columns_a(), lda, stride_a, batch); }
int64_t Problem::extent_b() const { return extent(rows_b(), columns_b(), ldb, stride_b, batch); }
int64_t Problem::extent_c() const { return extent(m, n, ldc, stride_c, batch); }

Problem packed_problem(int64_t m, int64_t n, int64_t k, Op op_a, Op op_b, int64_t batch) {
  Problem p{m, n, k, op_a, op_b};
  p.batch = batch;
  p.lda = std::max<int64_t>(1, p.rows_a());
  p.ldb = std::max<int64_t>(1, p.rows_b());
  p.ldc = std::max<int64_t>(1, m);
  p.stride_a = p.lda * p.columns_a();
  p.stride_b = p.ldb * p.columns_b();
  p.stride_c = p.ldc * n;
  return p;
}

std::string why_refused(const Problem& p) {
  if (p.m < 0 || p.n < 0 || p.k < 0) return "m, n and k must not be negative (" + to_string(p) + ")";
  if (p.batch < 0) return "the batch count must not be negative (" + std::to_string(p.batch) + ")";
  // cuBLAS accepts any leading dimension of C for an empty C, and so do we.
  if (p.empty()) return {};
  for (const std::string& why : {refused_ld("lda", p.lda, p.k == 0 ? 1 : p.rows_a()),
                                 refused_ld("ldb", p.ldb, p.k == 0 ? 1 : p.rows_b()), refused_ld("ldc", p.ldc, p.m)})
    if (!why.empty()) return why;
  if (p.batch > 1 && (p.stride_a < 0 || p.stride_b < 0 || p.stride_c < 0)) return "batch strides must not be negative";
  return {};
}

char to_char(Op op) { return op == Op::N ? 'N' : 'T'; }

bool op_from_char(char c, Op& op) {
  switch (c) {
    case 'n':
    case 'N': op = Op::N; return true;
    case 't':
    case 'T':
    case 'c':
    case 'C': op = Op::T; return true;
    default: return false;
  }
}

std::string ops_name(Op op_a, Op op_b) { return {to_char(op_a), to_char(op_b)}; }

std::string to_string(const Problem& p) {
  std::string text =
      std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) + " " + ops_name(p.op_a, p.op_b);
  if (p.batch != 1) text += " batch " + std::to_string(p.batch);
  const auto is_packed = [](int64_t ld, int64_t rows) { return ld == std::max<int64_t>(1, rows); };
  if (!is_packed(p.lda, p.rows_a()) || !is_packed(p.ldb, p.rows_b()) || !is_packed(p.ldc, p.m))
    text += " ld " + std::to_string(p.lda) + "," + std::to_string(p.ldb) + "," + std::to_string(p.ldc);
  return text;
}

std::ostream& operator<<(std::ostream& out, const Problem& p) { return out << to_string(p); }

}  // namespace gemm
