#include "dropin/real_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>

namespace gemm::dropin {
namespace {

struct LoadedFiles {
  const std::string& stem;
  std::vector<std::string> paths;
};

// True for libcublas.so, libcublas.so.13 and libcublas-3b81d170.so.12, as Python wheels name their copies; not for
// libcublasLt.
bool has_stem(const std::string& path, const std::string& stem) {
  const std::string file = path.substr(path.rfind('/') + 1);
  if (!file.starts_with(stem) || file.size() == stem.size()) return false;
  const char next = file[stem.size()];
  return (next == '.' || next == '-') && file.find(".so") != std::string::npos;
}

int collect(dl_phdr_info* info, size_t /*size*/, void* data) {
  auto& found = *static_cast<LoadedFiles*>(data);
  if (info->dlpi_name && has_stem(info->dlpi_name, found.stem)) found.paths.emplace_back(info->dlpi_name);
  return 0;
}

std::vector<std::string> loaded_paths(const std::string& stem) {
  LoadedFiles loaded{stem, {}};
  dl_iterate_phdr(collect, &loaded);
  return loaded.paths;
}

}  // namespace

bool RealLibrary::is_loaded() const { return !loaded_paths(stem_).empty(); }

bool RealLibrary::search_loaded() {
  for (const std::string& path : loaded_paths(stem_))
    if ((file_ = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD)) != nullptr) return true;
  return false;
}

void RealLibrary::search() {
  if (search_loaded()) return;
  for (const std::string& name : names_) {
    if ((file_ = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL)) != nullptr) return;
    const char* message = dlerror();
    why_not_ += std::string(why_not_.empty() ? "" : "; ") + (message ? message : name.c_str());
  }
}

void RealLibrary::complain(const char* name) {
  std::call_once(complained_, [&] {
    const std::string why = file_ ? "the one that is loaded lacks it" : why_not_;
    std::fprintf(stderr, "gemm: error: the drop-in finds no %s to forward %s to: %s\n", stem_.c_str(), name, why.c_str());
  });
}

void* RealLibrary::function_in_file(const char* name) {
  std::call_once(searched_, [this] { search(); });
  void* found = file_ ? dlsym(file_, name) : nullptr;
  if (!found) complain(name);
  return found;
}

void* RealLibrary::function(const char* name) {
  if (void* next = dlsym(RTLD_NEXT, name)) return next;
  return function_in_file(name);
}

RealLibrary& real_cublas() {
  static auto* library = new RealLibrary("libcublas", {"libcublas.so.13", "libcublas.so.12", "libcublas.so"});
  return *library;
}

RealLibrary& real_cublaslt() {
  static auto* library = new RealLibrary("libcublasLt", {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"});
  return *library;
}

}  // namespace gemm::dropin
