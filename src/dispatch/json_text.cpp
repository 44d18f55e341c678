#include "dispatch/json_text.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

namespace gemm {
namespace {

// A table nests four levels. Recursion over a hundred times that is still far from any stack's end.
constexpr int kDeepest = 64;

// True when brackets outside of strings nest more than kDeepest levels.
bool too_deep(const std::string& text) {
  int depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string && c == '\\')
      ++at;
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '[' || c == '{') && ++depth > kDeepest)
      return true;
    else if (!in_string && (c == ']' || c == '}'))
      --depth;
  }
  return false;
}

// Length of the number at text[at] if it is one beyond the range of doubles, such as 1e400; else 0.
size_t overflowing_number(const std::string& text, size_t at) {
  if (text[at] != '-' && (text[at] < '0' || text[at] > '9')) return 0;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  return error == std::errc::result_out_of_range ? static_cast<size_t>(end - text.data()) - at : 0;
}

// Length of the word or number at text[at] that stands for no finite number, or 0.
size_t nonfinite(const std::string& text, size_t at) {
  for (const char* word : {"-Infinity", "Infinity", "NaN"})
    if (text.compare(at, std::char_traits<char>::length(word), word) == 0) return std::char_traits<char>::length(word);
  const bool begins = at == 0 || std::string_view("0123456789.eE+-").find(text[at - 1]) == std::string_view::npos;
  return begins ? overflowing_number(text, at) : 0;
}

}  // namespace

std::string quote_nonfinite(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (size_t at = 0; at < text.size();) {
    if (const size_t length = in_string ? 0 : nonfinite(text, at); length > 0) {
      out += '"' + text.substr(at, length) + '"';
      at += length;
      continue;
    }
    const size_t length = in_string && text[at] == '\\' && at + 1 < text.size() ? 2 : 1;
    if (text[at] == '"') in_string = !in_string;
    out.append(text, at, length);
    at += length;
  }
  return out;
}

std::string without_json_tag(const std::string& message) {
  const size_t end = message.find("] ");
  return end == std::string::npos ? message : message.substr(end + 2);
}

Result<nlohmann::json> parse_json(const std::string& text) {
  if (too_deep(text)) return Failure{"it is nested more than " + std::to_string(kDeepest) + " levels deep"};
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    return Failure{without_json_tag(error.what())};
  }
}

}  // namespace gemm
