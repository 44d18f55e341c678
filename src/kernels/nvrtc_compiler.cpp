#include "kernels/nvrtc_compiler.h"

#include <nvrtc.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "kernels/dynamic_library.h"
#include "kernels/sha256.h"

namespace gemm {
namespace {

// sm_90a has setmaxnreg, which LoadPath::warp_specialized needs; kernels are compiled for the GPU at hand, so nothing is
// lost.
constexpr int kHopper = 90;

constexpr const char* kInstallHint =
    "Install NVRTC of CUDA 12.8 or newer (Debian and Ubuntu package cuda-nvrtc-13-0, or the CUDA toolkit), or add its "
    "folder "
    "to LD_LIBRARY_PATH.";

// NVRTC's functions, and what names the exact compiler.
struct Nvrtc {
  explicit Nvrtc(DynamicLibrary opened) : library(std::move(opened)) {}

  DynamicLibrary library;
  std::optional<DynamicLibrary> builtins;
  decltype(nvrtcVersion)* version = nullptr;
  decltype(nvrtcGetNumSupportedArchs)* arch_count = nullptr;
  decltype(nvrtcGetSupportedArchs)* archs = nullptr;
  decltype(nvrtcGetErrorString)* error_string = nullptr;
  decltype(nvrtcCreateProgram)* create = nullptr;
  decltype(nvrtcDestroyProgram)* destroy = nullptr;
  decltype(nvrtcCompileProgram)* compile = nullptr;
  decltype(nvrtcGetProgramLogSize)* log_size = nullptr;
  decltype(nvrtcGetProgramLog)* log = nullptr;
  decltype(nvrtcGetCUBINSize)* cubin_size = nullptr;
  decltype(nvrtcGetCUBIN)* cubin = nullptr;
  decltype(nvrtcGetPTXSize)* ptx_size = nullptr;
  decltype(nvrtcGetPTX)* ptx = nullptr;

  std::vector<int> known_archs;
  std::string version_text;
  std::string identity;  // version, file name and size: tells builds of one version apart
};

template <class Function>
bool find(const DynamicLibrary& library, const char* name, Function*& function) {
  function = library.symbol<Function>(name);
  return function != nullptr;
}

bool find_functions(Nvrtc& n) {
  const DynamicLibrary& lib = n.library;
  return find(lib, "nvrtcVersion", n.version) && find(lib, "nvrtcGetNumSupportedArchs", n.arch_count) &&
         find(lib, "nvrtcGetSupportedArchs", n.archs) && find(lib, "nvrtcGetErrorString", n.error_string) &&
         find(lib, "nvrtcCreateProgram", n.create) && find(lib, "nvrtcDestroyProgram", n.destroy) &&
         find(lib, "nvrtcCompileProgram", n.compile) && find(lib, "nvrtcGetProgramLogSize", n.log_size) &&
         find(lib, "nvrtcGetProgramLog", n.log) && find(lib, "nvrtcGetCUBINSize", n.cubin_size) &&
         find(lib, "nvrtcGetCUBIN", n.cubin) && find(lib, "nvrtcGetPTXSize", n.ptx_size) && find(lib, "nvrtcGetPTX", n.ptx);
}

bool query_version_and_archs(Nvrtc& n) {
  int major = 0, minor = 0, count = 0;
  if (n.version(&major, &minor) != NVRTC_SUCCESS || n.arch_count(&count) != NVRTC_SUCCESS || count <= 0) return false;
  n.known_archs.resize(static_cast<size_t>(count));
  if (n.archs(n.known_archs.data()) != NVRTC_SUCCESS) return false;
  n.version_text = std::to_string(major) + "." + std::to_string(minor);
  std::error_code error;
  const std::filesystem::path path = n.library.path();
  const auto bytes = std::filesystem::file_size(path, error);
  n.identity = n.version_text + " " + path.filename().string() + " " + std::to_string(error ? 0 : bytes);
  return true;
}

// NVRTC asks the loader for its builtins by name. Loading them from NVRTC's own folder first makes that work also where the
// folder is not on the loader's path.
void load_builtins_beside(Nvrtc& n) {
  const std::filesystem::path folder = std::filesystem::path(n.library.path()).parent_path();
  const auto builtins = DynamicLibrary::open({(folder / ("libnvrtc-builtins.so." + n.version_text)).string()}, kInstallHint);
  if (builtins) n.builtins = *builtins;
}

Result<Nvrtc> open_nvrtc() {
  Result<DynamicLibrary> library = DynamicLibrary::open({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}, kInstallHint);
  if (!library) return Failure{"kernels cannot be compiled: " + library.error()};
  Nvrtc n(std::move(*library));
  if (!find_functions(n) || !query_version_and_archs(n))
    return Failure{"kernels cannot be compiled: " + n.library.path() + " is not a working NVRTC. " + kInstallHint};
  load_builtins_beside(n);
  return n;
}

// Opened once and kept until the process ends: its own static objects do not survive closing while other threads compile.
const Result<Nvrtc>& nvrtc() {
  static const auto* const opened = new Result<Nvrtc>(open_nvrtc());
  return *opened;
}

std::vector<std::string> options_for(const CompileTarget& target) {
  return {"-std=c++20", "-arch=" + target.arch, "-default-device", "--ptxas-options=--warn-on-spills"};
}

// A program that destroys itself.
class Program {
 public:
  explicit Program(const Nvrtc& nvrtc) : nvrtc_(nvrtc) {}
  ~Program() {
    if (program_) nvrtc_.destroy(&program_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  nvrtcResult create(const std::string& source, const std::string& name) {
    std::vector<const char*> texts, names;
    for (const EmbeddedSource& header : embedded_sources()) {
      texts.push_back(header.text);
      names.push_back(header.name);
    }
    return nvrtc_.create(&program_, source.c_str(), name.c_str(), static_cast<int>(texts.size()), texts.data(),
                         names.data());
  }

  nvrtcResult compile(const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    pointers.reserve(options.size());
    for (const std::string& option : options) pointers.push_back(option.c_str());
    return nvrtc_.compile(program_, static_cast<int>(pointers.size()), pointers.data());
  }

  std::string log() const {
    std::string text = fetch(nvrtc_.log_size, nvrtc_.log);
    while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
    return text;
  }
  std::string image(bool is_ptx) const {
    return is_ptx ? fetch(nvrtc_.ptx_size, nvrtc_.ptx) : fetch(nvrtc_.cubin_size, nvrtc_.cubin);
  }

 private:
  std::string fetch(nvrtcResult (*size_of)(nvrtcProgram, size_t*), nvrtcResult (*get)(nvrtcProgram, char*)) const {
    size_t bytes = 0;
    if (size_of(program_, &bytes) != NVRTC_SUCCESS || bytes == 0) return {};
    std::string text(bytes, '\0');
    return get(program_, text.data()) == NVRTC_SUCCESS ? text : std::string();
  }

  const Nvrtc& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

std::string explain(const Nvrtc& n, nvrtcResult result, const std::string& log) {
  const bool builtins_missing =
      result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE || log.find("nvrtc-builtins") != std::string::npos;
  std::string text = n.error_string(result);
  if (builtins_missing)
    text +=
        " (libnvrtc-builtins.so." + n.version_text + " is missing beside " + n.library.path() + ". " + kInstallHint + ")";
  return log.empty() ? text : text + "\n" + log;
}

}  // namespace

const std::string& kernel_sources_digest() {
  static const std::string digest = [] {
    std::string all;
    for (const EmbeddedSource& header : embedded_sources()) all += std::string(header.name) + '\0' + header.text + '\0';
    return sha256_hex(all);
  }();
  return digest;
}

Result<CompileTarget> choose_target(int compute_capability, const std::vector<int>& known) {
  if (std::find(known.begin(), known.end(), compute_capability) != known.end())
    return CompileTarget{"sm_" + std::to_string(compute_capability) + (compute_capability == kHopper ? "a" : ""), false};
  int nearest_older = 0;
  for (const int arch : known)
    if (arch < compute_capability) nearest_older = std::max(nearest_older, arch);
  if (nearest_older == 0)
    return Failure{"this NVRTC has no code generator for sm_" + std::to_string(compute_capability) +
                   " or older; install an NVRTC of an earlier CUDA release"};
  return CompileTarget{"compute_" + std::to_string(nearest_older), true};
}

Result<CompileTarget> target_for(int compute_capability) {
  if (!nvrtc()) return Failure{nvrtc().error()};
  return choose_target(compute_capability, nvrtc()->known_archs);
}

Result<Cubin> compile_kernel(const KernelSpec& spec, int compute_capability) {
  const Result<CompileTarget> target = target_for(compute_capability);
  if (!target) return Failure{target.error()};
  const auto failure = [&](const std::string& why) {
    return Failure{"NVRTC " + nvrtc()->version_text + " cannot compile " + spec.name + " for " + target->arch + ": " + why};
  };

  Program program(*nvrtc());
  if (const nvrtcResult result = program.create(source_of(spec), spec.name + ".cu"); result != NVRTC_SUCCESS)
    return failure(explain(*nvrtc(), result, ""));
  if (const nvrtcResult result = program.compile(options_for(*target)); result != NVRTC_SUCCESS)
    return failure(explain(*nvrtc(), result, program.log()));
  Cubin cubin{program.image(target->is_ptx), program.log(), *target};
  if (cubin.image.empty()) return failure("it produced no code\n" + cubin.log);
  return cubin;
}

Result<std::string> compile_key(const KernelSpec& spec, int compute_capability) {
  const Result<CompileTarget> target = target_for(compute_capability);
  if (!target) return Failure{target.error()};
  std::string key = "nvrtc " + nvrtc()->identity + "\noptions";
  for (const std::string& option : options_for(*target)) key += " " + option;
  return key + "\nheaders " + kernel_sources_digest() + "\nname " + spec.name + "\n" + source_of(spec);
}

std::string nvrtc_version() { return nvrtc() ? nvrtc()->version_text : "none"; }

}  // namespace gemm
