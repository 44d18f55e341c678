#include "tuner/csv_reader.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace gemm {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view without_blanks_in_front(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kBlanks), text.size()));
}

std::string_view trimmed(std::string_view text) { return text.substr(0, text.find_last_not_of(kBlanks) + 1); }

// Takes the field before the next comma off the front of `line`.
std::string take_plain(std::string_view& line) {
  const std::string_view field = line.substr(0, line.find(','));
  line.remove_prefix(field.size());
  return std::string(trimmed(field));
}

std::string in_lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

CsvReader::CsvReader(const std::string& path, const std::string& what, const std::string& example)
    : path_(path), what_(what), file_(path) {
  if (!file_) throw Error("cannot read the " + what_ + " '" + path_ + "': " + std::strerror(errno));
  if (!read_line()) throw Error(path_ + ": empty; the first line must name the columns, e.g. " + example);
  for (const std::string& field : fields_) header_.push_back(in_lower_case(field));
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
  for (std::string text; std::getline(file_, text);) {
    ++line_number_;
    if (line_number_ == 1 && text.rfind("\xEF\xBB\xBF", 0) == 0) text.erase(0, 3);
    const std::string_view line = trimmed(without_blanks_in_front(text));
    if (line.empty() || line[0] == '#') continue;
    fields_ = split(line);
    return true;
  }
  if (file_.bad()) throw Error("cannot read the " + what_ + " '" + path_ + "': " + std::strerror(errno));
  return false;
}

std::vector<std::string> CsvReader::split(std::string_view line) const {
  std::vector<std::string> fields;
  for (;;) {
    line = without_blanks_in_front(line);
    fields.push_back(line.starts_with('"') ? take_quoted(line) : take_plain(line));
    line = without_blanks_in_front(line);
    if (line.empty()) return fields;
    if (line[0] != ',')
      fail("after the quoted field \"" + fields.back() + "\" comes '" + std::string(line) + "', but must come a comma");
    line.remove_prefix(1);
  }
}

// Takes a field off the front of `line`, which begins with its quote. Two quotes inside stand for one.
std::string CsvReader::take_quoted(std::string_view& line) const {
  std::string field;
  for (size_t at = 1; at < line.size(); ++at) {
    const bool quote = line[at] == '"', twice = quote && line.substr(at + 1).starts_with('"');
    if (quote && !twice) {
      line.remove_prefix(at + 1);
      return field;
    }
    field += line[at];
    if (twice) ++at;
  }
  fail("the quoted field " + std::string(line) + " has no closing quote; fields here may hold no line breaks");
}

std::string csv_field(const std::string& text) {
  const bool plain =
      text.find_first_of(",\"") == text.npos && trimmed(without_blanks_in_front(text)) == text && !text.starts_with('#');
  if (plain) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace gemm
