#include "dispatch/json_text.h"

#include <nlohmann/json.hpp>

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

}  // namespace

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
