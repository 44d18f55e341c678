#include "dropin/settings.h"

#include <cstdlib>
#include <string_view>

namespace gemm::dropin {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool is_on(const char* name) { return !variable(name).empty() && variable(name) != "0"; }

}  // namespace

Settings read_settings() {
  Settings s;
  s.off = variable("GEMM_DROPIN") == "off";
  s.report = is_on("GEMM_DROPIN_REPORT");
  s.reduced_math = is_on("NVIDIA_TF32_OVERRIDE") || is_on("CUBLAS_EMULATE_SINGLE_PRECISION");
  return s;
}

const Settings& settings() {
  static const Settings read = read_settings();
  return read;
}

}  // namespace gemm::dropin
