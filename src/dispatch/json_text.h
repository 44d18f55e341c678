// JSON text that comes from outside.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kernels/result.h"

namespace gemm {

// Parses `text`. Failure: where it is no JSON, or that it is nested more deeply than any file of ours, which recursive code
// would answer with a stack overflow.
Result<nlohmann::json> parse_json(const std::string& text);

// Some writers emit NaN and Infinity, which are not JSON, or numbers that no double holds. Quoted, they cost the entry that
// holds them, not the whole text.
std::string quote_nonfinite(const std::string& text);

// "[json.exception.parse_error.101] parse error at line 1, column 7: …" without the bracket.
std::string without_json_tag(const std::string& message);

}  // namespace gemm
