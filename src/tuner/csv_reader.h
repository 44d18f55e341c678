// CSV files with a header line, as RFC 4180 describes them: a field that holds commas or quotes stands in quotes. Blanks
// around fields do not count, nor does upper or lower case in names of columns. Fields hold no line breaks, so that a quote
// that is never closed costs one clear message, not the rest of the file.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/result.h"

namespace gemm {

// Reads line by line and knows where it is, so that every message says so. All failures are Errors with file and line.
class CsvReader {
 public:
  // Reads the header. `what` is the file's name in messages, "shapes file"; `example` columns that a header could have.
  CsvReader(const std::string& path, const std::string& what, const std::string& example);

  // Goes to the next line that is neither empty nor a comment (#). False at the end of the file.
  bool next();

  // Names of columns are in lower case, here and below.
  const std::vector<std::string>& header() const { return header_; }
  bool has(const std::string& column) const { return columns_.count(column) != 0; }
  void require(const std::vector<std::string>& columns) const;

  // Fields of the current line. The column must be there.
  const std::string& text(const std::string& column) const { return fields_[columns_.at(column)]; }
  int64_t whole(const std::string& column, int64_t low, int64_t high) const;

  [[noreturn]] void fail(const std::string& what) const;

 private:
  bool read_line();
  std::vector<std::string> split(std::string_view line) const;
  std::string take_quoted(std::string_view& line) const;

  std::string path_, what_;
  std::ifstream file_;
  int line_number_ = 0;
  std::vector<std::string> header_, fields_;
  std::map<std::string, size_t> columns_;  // name -> place
};

// `text` as a field that CsvReader reads back: in quotes where it needs them.
std::string csv_field(const std::string& text);

}  // namespace gemm
