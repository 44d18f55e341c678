// The problems to tune or to measure: a CSV file, or the default grid.
#pragma once

#include <string>
#include <vector>

#include "kernels/problem.h"
#include "kernels/result.h"
#include "tuner/csv_reader.h"

namespace gemm {

struct Shape {
  std::string shape_class;  // groups shapes in reports; may be empty
  Problem problem;
};

// Reads a file with a header line that names the columns m,n,k,transa,transb and, where wanted, class, batch, lda, ldb, ldc
// and source, in any order, in upper or lower case, quoted or not. An ld that is 0 or empty is the smallest one; the
// matrices of a batch follow each other, ld times columns apart. Failure: the reason with file, line and column.
Result<std::vector<Shape>> read_shapes(const std::string& path);

// The shape of the current line; an Error with file, line and column where it is none. The columns m,n,k,transa,transb are
// there.
Shape read_shape(const CsvReader& csv);

// The default grid for a GPU; docs/tuning.md describes it.
std::vector<Shape> default_shapes();

// The few tiny shapes that the emulated device is tuned for by default.
std::vector<Shape> emulated_shapes();

// `shapes` without repeated problems; the first of each stays.
std::vector<Shape> without_repeats(const std::vector<Shape>& shapes);

// Whether all leading dimensions and strides are the smallest ones.
bool is_packed(const Problem& problem);

// Makes all problems packed, as tables hold them. Returns how many were not.
size_t pack(std::vector<Shape>& shapes);

}  // namespace gemm
