#include "kernels/relayout.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/launch_arithmetic.h"

namespace gemm {
namespace {

constexpr int64_t kLineFloats = 32;      // lines of a copy begin at multiples of 128 bytes, as L2 lines do
constexpr int64_t kPanelMultiple = 256;  // rows or columns: whole block tiles
// Shorter panels (4096 x 1024 is 64 tiles of 256 x 256) would leave multiprocessors idle between them.
constexpr int64_t kLeastPanel = 1024;

constexpr std::array<std::pair<Relayout, const char*>, 4> kNames = {
    {{Relayout::none, "none"}, {Relayout::a, "a"}, {Relayout::b, "b"}, {Relayout::ab, "ab"}}};

int64_t round_up_to(int64_t value, int64_t multiple) { return ceil_div(value, multiple) * multiple; }

// An operand as it is stored, and its copy.
struct Side {
  bool copied;
  bool along_k;
  int64_t rows, ld, stride, matrices;
  int64_t bytes;  // of the copies of `rows` rows
};

Side side(bool copied, bool along_k, int64_t rows, int64_t ld, int64_t stride, const Problem& p) {
  const int64_t matrices = stride == 0 ? 1 : p.batch;
  return {copied, along_k, rows, ld, stride, matrices, copied ? round_up_to(rows, kLineFloats) * p.k * matrices * 4 : 0};
}

Side side_a(Relayout r, const Problem& p) { return side(copies_a(r), p.op_a == Op::T, p.m, p.lda, p.stride_a, p); }
Side side_b(Relayout r, const Problem& p) { return side(copies_b(r), p.op_b == Op::N, p.n, p.ldb, p.stride_b, p); }

bool gains(bool along_k, int64_t columns, int64_t ld, int64_t stride, int64_t batch) {
  return along_k || widest_vector(nullptr, ld, columns, stride, batch) < 4;
}

// Rows of the larger operand that go into one panel; all of them where there is space, or 0 where there is too little.
int64_t panel_rows(const Side& large, const Side& small, const Problem& p) {
  if (large.bytes + small.bytes <= kMostCopyBytes) return large.rows;
  // The matrices of a batch are copied together.
  if (p.batch > 1) return 0;
  const int64_t most = (kMostCopyBytes - small.bytes) / (4 * p.k) / kPanelMultiple * kPanelMultiple;
  if (most < kLeastPanel) return 0;
  return round_up_to(ceil_div(large.rows, ceil_div(large.rows, most)), kPanelMultiple);
}

int64_t panel_rows(Relayout relayout, const Problem& p) {
  const Side a = side_a(relayout, p), b = side_b(relayout, p);
  return a.bytes > b.bytes ? panel_rows(a, b, p) : panel_rows(b, a, p);
}

RelayoutOperand copy_of(const Side& s, int64_t k, const float* from, float* to) {
  RelayoutOperand operand{};
  operand.from = from, operand.to = to;
  operand.ld = s.ld, operand.stride = s.stride;
  operand.to_ld = round_up_to(s.rows, kLineFloats);
  operand.to_stride = operand.to_ld * k;
  operand.rows = static_cast<int>(s.rows), operand.k = static_cast<int>(k);
  operand.along_k = s.along_k;
  operand.tiles = static_cast<int>(ceil_div(s.rows, kRelayoutTile) * ceil_div(k, kRelayoutTile));
  operand.matrices = static_cast<int>(s.matrices);
  return operand;
}

}  // namespace

const char* to_string(Relayout relayout) {
  for (const auto& [value, name] : kNames)
    if (value == relayout) return name;
  return "?";
}

bool from_string(const std::string& text, Relayout& relayout) {
  for (const auto& [value, name] : kNames)
    if (text == name) {
      relayout = value;
      return true;
    }
  return false;
}

bool gains_by_copy_a(const Problem& p) { return gains(p.op_a == Op::T, p.columns_a(), p.lda, p.stride_a, p.batch); }
bool gains_by_copy_b(const Problem& p) { return gains(p.op_b == Op::N, p.columns_b(), p.ldb, p.stride_b, p.batch); }

const char* why_not_relaid(Relayout relayout, const Problem& p) {
  if (relayout == Relayout::none || p.empty() || p.k == 0) return nullptr;
  if (p.batch > kMaxGridYZ) return "too many matrices to copy";
  // Far below what 64 bits hold, and above what space there is.
  constexpr double kMostFloats = 1e15;
  const double floats = static_cast<double>(std::max(p.m, p.n)) * static_cast<double>(p.k) * static_cast<double>(p.batch);
  if (floats > kMostFloats || panel_rows(relayout, p) == 0) return "the copies of its operands need too much workspace";
  return nullptr;
}

Problem relaid_problem(Relayout relayout, const Problem& p) {
  Problem relaid = p;
  if (copies_a(relayout)) {
    relaid.op_a = Op::N;
    relaid.lda = round_up_to(p.m, kLineFloats);
    if (p.stride_a != 0) relaid.stride_a = relaid.lda * p.k;
  }
  if (copies_b(relayout)) {
    relaid.op_b = Op::T;
    relaid.ldb = round_up_to(p.n, kLineFloats);
    if (p.stride_b != 0) relaid.stride_b = relaid.ldb * p.k;
  }
  return relaid;
}

RelaidProduct relaid_product(Relayout relayout, const Problem& p) {
  const Side a = side_a(relayout, p), b = side_b(relayout, p);
  RelaidProduct product;
  product.along_m = a.bytes > b.bytes;
  int64_t Problem::*const length = product.along_m ? &Problem::m : &Problem::n;
  const int64_t rows = std::max<int64_t>(1, panel_rows(relayout, p));  // 0 only where it cannot be relaid
  product.panels = ceil_div(p.*length, rows);
  Problem part = p;
  part.*length = rows;
  product.panel = relaid_problem(relayout, part);
  part.*length = p.*length - (product.panels - 1) * rows;
  product.last = relaid_problem(relayout, part);
  const auto bytes = [&](bool copied, int64_t ld, const Side& s) {
    return copied ? round_up_to(ld * p.k * s.matrices * 4, 256) : 0;
  };
  product.copy_bytes_a = bytes(a.copied, product.panel.lda, a);
  product.copy_bytes_b = bytes(b.copied, product.panel.ldb, b);
  return product;
}

RelayoutArgs copies_of_panel(Relayout relayout, const Problem& p, const RelaidProduct& product, int64_t number,
                             const float* a, const float* b, float* workspace) {
  Problem part = number == product.panels - 1 ? product.last : product.panel;
  part.op_a = p.op_a, part.op_b = p.op_b;
  part.lda = p.lda, part.ldb = p.ldb;
  part.stride_a = p.stride_a, part.stride_b = p.stride_b;
  const Side of_a = side_a(relayout, part), of_b = side_b(relayout, part);
  const int64_t row = product.first_row(number), column = product.first_column(number);
  RelayoutArgs args{};
  if (of_a.copied && (number == 0 || product.along_m))
    args.a = copy_of(of_a, p.k, a + row * (of_a.along_k ? p.lda : 1), workspace);
  if (of_b.copied && (number == 0 || !product.along_m))
    args.b = copy_of(of_b, p.k, b + column * (of_b.along_k ? p.ldb : 1), workspace + product.copy_bytes_a / 4);
  return args;
}

}  // namespace gemm
