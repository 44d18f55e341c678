#include "tuner/shapes.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace gemm {
namespace {

constexpr int64_t kLargestLength = 2147483647;  // what cublasSgemm takes

int64_t length(const CsvReader& csv, const char* column) { return csv.whole(column, 1, kLargestLength); }

Op read_op(const CsvReader& csv, const char* column) {
  const std::string& text = csv.text(column);
  Op value = Op::N;
  if (text.size() != 1 || !op_from_char(text[0], value))
    csv.fail(std::string("column '") + column + "' is '" + text + "', but must be N or T");
  return value;
}

// A missing column, an empty field or 0 stands for the packed one.
void read_leading_dimensions(const CsvReader& csv, Problem& p) {
  const auto read = [&](const char* column, int64_t& ld, int64_t columns, int64_t& stride) {
    if (!csv.has(column) || csv.text(column).empty() || csv.text(column) == "0") return;
    const int64_t least = ld;
    ld = length(csv, column);
    if (ld < least)
      csv.fail(std::string("column '") + column + "' is " + std::to_string(ld) + ", but must be at least " +
               std::to_string(least) + ", the rows of the matrix as stored (or 0 for exactly that)");
    stride = ld * columns;
  };
  read("lda", p.lda, p.columns_a(), p.stride_a);
  read("ldb", p.ldb, p.columns_b(), p.stride_b);
  read("ldc", p.ldc, p.n, p.stride_c);
}

void check_header(const CsvReader& csv) {
  static const std::vector<std::string> known = {"class", "m",   "n",   "k",   "transa", "transb",
                                                 "batch", "lda", "ldb", "ldc", "source"};
  for (const std::string& column : csv.header())
    if (std::find(known.begin(), known.end(), column) == known.end())
      csv.fail("unknown column '" + column + "'; the columns are class,m,n,k,transa,transb,batch,lda,ldb,ldc,source");
  csv.require({"m", "n", "k", "transa", "transb"});
}

// Every field, to order problems by.
auto all_of(const Problem& p) {
  return std::make_tuple(p.m, p.n, p.k, p.op_a, p.op_b, p.lda, p.ldb, p.ldc, p.batch, p.stride_a, p.stride_b, p.stride_c);
}

// Collects shapes with little to write for each.
struct ShapeList {
  std::vector<Shape> shapes;
  void add(const char* shape_class, int64_t m, int64_t n, int64_t k, const char* ops, int64_t batch = 1) {
    Op a = Op::N, b = Op::N;
    op_from_char(ops[0], a);
    op_from_char(ops[1], b);
    shapes.push_back({shape_class, packed_problem(m, n, k, a, b, batch)});
  }
};

void add_skinny(ShapeList& list) {
  // Weights times a few vectors, as both operands are stored in practice: TN and NN for a small n, NN and NT for a small m.
  for (int64_t length : {1024, 2048, 5120, 8192})
    for (int64_t small : {1, 4, 8, 16, 32, 64, 128}) list.add("skinny", length, small, length, "TN");
  for (int64_t small : {1, 4}) list.add("skinny", 2048, small, 2048, "NN");
  for (int64_t small : {1, 4, 16, 64, 128}) list.add("skinny", 5120, small, 5120, "NN");
  for (int64_t small : {4, 16, 128}) list.add("skinny", small, 4096, 4096, "NN");
  for (int64_t small : {32, 128}) list.add("skinny", small, 2048, 2048, "NT");
  for (int64_t small : {2, 8, 24, 96}) list.add("skinny", 11008, small, 4096, "TN");
  for (int64_t small : {8, 48}) list.add("skinny", 4096, small, 11008, "TN");
  // Not aligned, as above.
  for (const char* ops : {"NN", "NT", "TN", "TT"}) list.add("skinny", 4095, 17, 4095, ops);
  list.add("skinny", 17, 4095, 4095, "NN");
}

void add_squares(ShapeList& list) {
  for (int64_t length : {64, 96, 128, 256, 320, 512, 640, 768, 896, 1024, 1280, 1792, 2048, 2560, 3584, 4096, 5120, 8192})
    list.add("square", length, length, length, "NN");
  for (int64_t length : {128, 256, 512, 1024, 2048, 4096})
    for (const char* ops : {"NT", "TN"}) list.add("square", length, length, length, ops);
  for (int64_t length : {256, 1024, 2048}) list.add("square", length, length, length, "TT");
  for (int64_t length : {65, 255, 511, 577, 1023, 1537, 2305, 3001}) list.add("square_odd", length, length, length, "NN");
  // Operands that are not aligned are read by other kernels, in other ways for each op pair.
  for (int64_t length : {511, 1023, 1537})
    for (const char* ops : {"NT", "TN", "TT"}) list.add("square_odd", length, length, length, ops);
  list.add("square_odd", 577, 577, 577, "NT");
  list.add("square_odd", 2305, 2305, 2305, "TN");
}

void add_deep_and_shallow(ShapeList& list) {
  for (int64_t length : {16, 32, 64, 128, 256, 512})
    for (int64_t depth : {8192, 65536})
      for (const char* ops : {"NN", "NT"}) list.add("deepk", length, length, depth, ops);
  for (int64_t length : {32, 128}) list.add("deepk", length, length, 32768, "TN");
  list.add("deepk", 1024, 16, 131072, "NN");
  for (int64_t depth : {8, 16, 32, 64, 128, 256})
    for (int64_t length : {1024, 4096}) list.add("shallowk", length, length, depth, depth % 3 == 2 ? "NN" : "NT");
  for (int64_t depth : {24, 96, 192}) list.add("shallowk", 2048, 2048, depth, "TN");
}

void add_tall_rectangular_batched(ShapeList& list) {
  for (int64_t small : {8, 32, 128}) list.add("tall", 200000, small, small, "NN");
  for (int64_t small : {32, 128}) list.add("tall", 32768, small, 512, "TN");
  list.add("tall", 64, 32768, 256, "NN");
  list.add("tall", 500000, 16, 16, "NN");
  list.add("tall", 100000, 16, 48, "NT");
  for (int64_t tokens : {192, 256, 384, 512, 1024})
    for (int64_t length : {768, 1024, 4096}) list.add("rect", length, tokens, length, "TN");
  for (int64_t tokens : {256, 1024}) list.add("rect", 3072, tokens, 768, "NN");
  for (int64_t tokens : {256, 1024}) list.add("rect", 1536, tokens, 3000, "NT");
  list.add("rect", 1200, 1800, 600, "TN");
  list.add("rect", 640, 640, 128, "NN");
  for (int64_t length : {16, 32, 64, 128, 256}) list.add("batched", length, length, length, "NN", length <= 32 ? 2048 : 64);
  list.add("batched", 48, 48, 48, "NN", 512);
  for (int64_t length : {32, 64, 128}) list.add("batched", length, length, length, "TN", 16384 / length);
  list.add("batched", 64, 64, 64, "NT", 256);
  list.add("batched", 256, 256, 64, "TN", 64);
  list.add("batched", 64, 256, 256, "NN", 64);
  list.add("batched", 1024, 1024, 64, "TN", 16);
  list.add("batched", 64, 1, 64, "TN", 512);
}

}  // namespace

Shape read_shape(const CsvReader& csv) {
  Shape shape;
  if (csv.has("class")) shape.shape_class = csv.text("class");
  shape.problem = packed_problem(length(csv, "m"), length(csv, "n"), length(csv, "k"), read_op(csv, "transa"),
                                 read_op(csv, "transb"), csv.has("batch") ? length(csv, "batch") : 1);
  read_leading_dimensions(csv, shape.problem);
  return shape;
}

Result<std::vector<Shape>> read_shapes(const std::string& path) {
  try {
    CsvReader csv(path, "shapes file", "m,n,k,transa,transb");
    check_header(csv);
    std::vector<Shape> shapes;
    while (csv.next()) shapes.push_back(read_shape(csv));
    if (shapes.empty()) return Failure{path + ": no shapes after the header line"};
    return shapes;
  } catch (const Error& error) {
    return Failure{error.what()};
  }
}

std::vector<Shape> default_shapes() {
  ShapeList list;
  add_squares(list);
  add_skinny(list);
  add_deep_and_shallow(list);
  add_tall_rectangular_batched(list);
  return without_repeats(list.shapes);
}

std::vector<Shape> emulated_shapes() {
  ShapeList list;
  list.add("square", 64, 64, 64, "NN");
  list.add("square_odd", 33, 65, 17, "NT");
  list.add("deepk", 16, 16, 512, "TN");
  list.add("square_odd", 20, 12, 30, "TT");
  list.add("batched", 24, 24, 24, "NN", 3);
  return list.shapes;
}

std::vector<Shape> without_repeats(const std::vector<Shape>& shapes) {
  const auto before = [](const Problem& a, const Problem& b) { return all_of(a) < all_of(b); };
  std::set<Problem, decltype(before)> seen(before);
  std::vector<Shape> unique;
  for (const Shape& shape : shapes)
    if (seen.insert(shape.problem).second) unique.push_back(shape);
  return unique;
}

bool is_packed(const Problem& p) { return p == packed_problem(p.m, p.n, p.k, p.op_a, p.op_b, p.batch); }

size_t pack(std::vector<Shape>& shapes) {
  size_t changed = 0;
  for (Shape& shape : shapes) {
    Problem& p = shape.problem;
    if (is_packed(p)) continue;
    p = packed_problem(p.m, p.n, p.k, p.op_a, p.op_b, p.batch);
    ++changed;
  }
  return changed;
}

}  // namespace gemm
