#include "dispatch/json_fields.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace gemm::json_fields {

using nlohmann::json;

std::string shown(const json& value) {
  const std::string text = value.dump();
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

void wrong(const std::string& name, const json& value, const std::string& expected) {
  throw Error("\"" + name + "\" is " + shown(value) + " but must be " + expected);
}

const json& field(const json& object, const char* name) {
  if (!object.is_object()) throw Error("it is " + shown(object) + " but must be an object");
  const auto found = object.find(name);
  if (found == object.end()) throw Error(std::string("\"") + name + "\" is missing");
  return *found;
}

int64_t integer(const json& object, const char* name, int64_t low, int64_t high) {
  const json& value = field(object, name);
  const std::string expected = "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
  if (!value.is_number_integer()) wrong(name, value, expected);
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(high)) wrong(name, value, expected);
  const auto number = value.get<int64_t>();
  if (number < low || number > high) wrong(name, value, expected);
  return number;
}

int small_integer(const json& object, const char* name, int low, int high) {
  return static_cast<int>(integer(object, name, low, high));
}

double number(const json& object, const char* name, bool zero_allowed) {
  const json& value = field(object, name);
  const char* expected = zero_allowed ? "a number from 0" : "a number above 0";
  if (!value.is_number()) wrong(name, value, expected);
  const auto x = value.get<double>();
  if (!std::isfinite(x) || x < 0 || (x == 0 && !zero_allowed)) wrong(name, value, expected);
  return x;
}

std::string text_of(const json& object, const char* name) {
  const json& value = field(object, name);
  if (!value.is_string()) wrong(name, value, "a string");
  return value.get<std::string>();
}

double element(const json& array, size_t index, const char* name, double low, double high) {
  const json& value = array[index];
  const bool fits = value.is_number() && value.get<double>() >= low && value.get<double>() <= high;
  if (!fits) wrong(std::string(name) + "[" + std::to_string(index) + "]", value, "a number in its range");
  return value.get<double>();
}

}  // namespace gemm::json_fields
