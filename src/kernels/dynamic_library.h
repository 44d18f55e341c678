// Libraries that are opened on first need (NVRTC, cuBLAS, cuBLASLt, NVML), so that every program starts without them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/result.h"

namespace gemm {

// An open shared library; closed when the last copy goes. CUDA's libraries must outlive everything that they made, so who
// opens one of them keeps it until the process ends.
class DynamicLibrary {
 public:
  // Opens the first of `names` that the loader finds, then tries the same names in /usr/local/cuda/lib64. The failure says
  // what was tried, and `install_hint` what to do about it.
  static Result<DynamicLibrary> open(const std::vector<std::string>& names, const std::string& install_hint);

  // The function `name`, or nullptr. `auto* create = library.symbol<decltype(nvrtcCreateProgram)>("nvrtcCreateProgram")`.
  template <class Function>
  Function* symbol(const char* name) const {
    return reinterpret_cast<Function*>(find(name));
  }

  // The file that was opened, symbolic links resolved; the name it was opened by where the loader does not tell.
  std::string path() const;

 private:
  DynamicLibrary(std::shared_ptr<void> handle, std::string name) : handle_(std::move(handle)), name_(std::move(name)) {}
  void* find(const char* name) const;

  std::shared_ptr<void> handle_;
  std::string name_;
};

}  // namespace gemm
