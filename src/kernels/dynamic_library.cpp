#include "kernels/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <system_error>

namespace gemm {
namespace {

constexpr const char* kToolkitFolder = "/usr/local/cuda/lib64/";

std::vector<std::string> candidates_of(const std::vector<std::string>& names) {
  std::vector<std::string> candidates = names;
  for (const std::string& name : names)
    if (name.find('/') == std::string::npos) candidates.push_back(kToolkitFolder + name);
  return candidates;
}

// The loader's message where it is more than "there is no such file": a damaged file, a missing dependency.
std::string why_not_loaded(const std::string& candidate) {
  const char* message = dlerror();
  const std::string text = message ? message : "";
  const bool just_missing = text.starts_with(candidate + ": cannot open shared object file: No such file");
  return just_missing ? "" : text;
}

}  // namespace

Result<DynamicLibrary> DynamicLibrary::open(const std::vector<std::string>& names, const std::string& install_hint) {
  std::string tried, reasons;
  for (const std::string& candidate : candidates_of(names)) {
    if (void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL))
      return DynamicLibrary(std::shared_ptr<void>(handle, [](void* h) { dlclose(h); }), candidate);
    tried += (tried.empty() ? "" : ", ") + candidate;
    if (const std::string reason = why_not_loaded(candidate); !reason.empty()) reasons += "; " + reason;
  }
  return Failure{"cannot open any of " + tried + reasons + ". " + install_hint};
}

void* DynamicLibrary::find(const char* name) const { return dlsym(handle_.get(), name); }

std::string DynamicLibrary::path() const {
  const link_map* map = nullptr;
  if (dlinfo(handle_.get(), RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name || !*map->l_name) return name_;
  std::error_code error;
  const std::filesystem::path resolved = std::filesystem::canonical(map->l_name, error);
  return error ? map->l_name : resolved.string();
}

}  // namespace gemm
