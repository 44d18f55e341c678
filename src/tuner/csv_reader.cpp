#include "tuner/csv_reader.h"

#include <cerrno>
#include <charconv>
#include <cstring>

namespace gemm {
namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string> split_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  for (char c : line) {
    if (c == ',')
      fields.emplace_back();
    else
      fields.back() += c;
  }
  for (std::string& field : fields) field = trimmed(field);
  return fields;
}

}  // namespace

CsvReader::CsvReader(const std::string& path, const std::string& what, const std::string& example)
    : path_(path), what_(what), file_(path) {
  if (!file_) throw Error("cannot read the " + what_ + " '" + path_ + "': " + std::strerror(errno));
  if (!read_line()) throw Error(path_ + ": empty; the first line must name the columns, e.g. " + example);
  header_ = fields_;
  for (size_t i = 0; i < header_.size(); ++i)
    if (!columns_.emplace(header_[i], i).second) fail("column '" + header_[i] + "' appears twice");
}

bool CsvReader::next() {
  if (!read_line()) return false;
  if (fields_.size() != header_.size())
    fail(std::to_string(fields_.size()) + " fields, but the header names " + std::to_string(header_.size()) + " columns");
  return true;
}

void CsvReader::require(const std::vector<std::string>& columns) const {
  for (const std::string& column : columns)
    if (!has(column)) fail("the header has no column '" + column + "'");
}

int64_t CsvReader::whole(const std::string& column, int64_t low, int64_t high) const {
  const std::string& field = text(column);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size() || value < low || value > high)
    fail("column '" + column + "' is '" + field + "', but must be a whole number from " + std::to_string(low) + " to " +
         std::to_string(high));
  return value;
}

void CsvReader::fail(const std::string& what) const {
  throw Error(path_ + ", line " + std::to_string(line_number_) + ": " + what);
}

bool CsvReader::read_line() {
  for (std::string line; std::getline(file_, line);) {
    ++line_number_;
    if (line_number_ == 1 && line.rfind("\xEF\xBB\xBF", 0) == 0) line.erase(0, 3);
    if (trimmed(line).empty() || trimmed(line)[0] == '#') continue;
    fields_ = split_fields(line);
    return true;
  }
  if (file_.bad()) throw Error("cannot read the " + what_ + " '" + path_ + "': " + std::strerror(errno));
  return false;
}

}  // namespace gemm
