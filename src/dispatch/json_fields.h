// Fields of JSON that must hold what a table may hold. Each function throws an Error that names the field, what it is and
// what it must be.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kernels/result.h"

namespace gemm::json_fields {

// The value as text, shortened where it is long.
std::string shown(const nlohmann::json& value);
[[noreturn]] void wrong(const std::string& name, const nlohmann::json& value, const std::string& expected);

const nlohmann::json& field(const nlohmann::json& object, const char* name);
int64_t integer(const nlohmann::json& object, const char* name, int64_t low, int64_t high);
int small_integer(const nlohmann::json& object, const char* name, int low = 1, int high = std::numeric_limits<int>::max());
// Not negative.
double number(const nlohmann::json& object, const char* name, bool zero_allowed);
std::string text_of(const nlohmann::json& object, const char* name);

// A number in an array that holds numbers from `low` to `high`.
double element(const nlohmann::json& array, size_t index, const char* name, double low, double high);

// One of the words that from_string knows.
template <class Enum>
Enum word(const nlohmann::json& object, const char* name, const char* expected) {
  Enum value{};
  if (!from_string(text_of(object, name), value)) wrong(name, field(object, name), expected);
  return value;
}

}  // namespace gemm::json_fields
