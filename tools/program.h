// What the programs share: checked output, inputs that must not be written over, and errors that end a program.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>

#include "kernels/result.h"

namespace gemm {

// Writes to standard output at once, and throws where that is not possible.
inline void print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    throw Error(std::string("cannot write to standard output: ") + std::strerror(errno));
}

// Of an output and an input, which may hold hours of work. Files that are not there are not the same.
inline bool same_file(const std::string& a, const std::string& b) {
  std::error_code not_there;
  return std::filesystem::equivalent(a, b, not_there);
}

// The exit status of `run`; an exception is reported as `prefix` and its message, with status 1.
inline int run_program(const char* prefix, int (*run)(int, char**), int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", prefix, error.what());
    return 1;
  }
}

}  // namespace gemm
