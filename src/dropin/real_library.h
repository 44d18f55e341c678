// Finds the functions of the cuBLAS that the program uses, behind our own symbols of the same names.
#pragma once

#include <mutex>
#include <string>
#include <vector>

namespace gemm::dropin {

// One library file, libcublas or libcublasLt. It is looked for once, at the first call:
//   1. what comes after us in the global scope (a program that is linked with cuBLAS; another preloaded library);
//   2. what is loaded in any scope: a host that opens its libraries with dlopen(RTLD_LOCAL), as Python does, keeps cuBLAS
//   out
//      of the global scope;
//   3. what the loader finds by name.
// It stays open until the process ends, since handles of it may live that long. Thread-safe.
class RealLibrary {
 public:
  // `stem` is "libcublas"; `names` are the sonames for step 3.
  RealLibrary(std::string stem, std::vector<std::string> names) : stem_(std::move(stem)), names_(std::move(names)) {}

  // The function, or nullptr with one message on stderr for the process.
  void* function(const char* name);

  // The same without step 1, for calls that come back while one of ours is on its way: following the global scope once more
  // could go round in circles.
  void* function_in_file(const char* name);

  // Whether the process has loaded such a file by now, whoever did it.
  bool is_loaded() const;

 private:
  void search();
  bool search_loaded();
  void complain(const char* name);

  std::string stem_;
  std::vector<std::string> names_;
  std::once_flag searched_;
  void* file_ = nullptr;  // from dlopen
  std::string why_not_;
  std::once_flag complained_;
};

RealLibrary& real_cublas();
RealLibrary& real_cublaslt();

}  // namespace gemm::dropin
