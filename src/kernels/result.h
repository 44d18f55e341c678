// Errors: a Result where failure is part of normal work, one exception type where it is not.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace gemm {

// Thrown inside the library and the tools; caught at the C boundary and in main(). The message says what happened, with
// which input, and what to do next.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A message that explains why there is no value.
struct Failure {
  std::string message;
};

// A value, or the reason why there is none.
template <class T>
class Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const T& operator*() const { return std::get<0>(state_); }
  T& operator*() { return std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const std::string& error() const { return std::get<1>(state_).message; }

  // The value, or an Error thrown with the reason.
  T value_or_throw() && {
    if (!ok()) throw Error(error());
    return std::get<0>(std::move(state_));
  }

 private:
  std::variant<T, Failure> state_;
};

}  // namespace gemm
