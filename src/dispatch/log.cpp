#include "dispatch/log.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace gemm {
namespace {

void print(const char* kind, const std::string& text) { std::fprintf(stderr, "gemm: %s: %s\n", kind, text.c_str()); }

}  // namespace

LogLevel log_level_from_environment(std::string* complaint) {
  const char* value = std::getenv("GEMM_LOG");
  const std::string_view text = value ? value : "";
  if (text == "off") return LogLevel::off;
  if (text == "info") return LogLevel::info;
  if (text == "debug") return LogLevel::debug;
  if (!text.empty() && text != "warn")
    *complaint = "GEMM_LOG is '" + std::string(text) + "' but must be off, warn, info or debug";
  return LogLevel::warn;
}

Log::Log(LogLevel level, Sink warn, Sink inform) : level_(level), warn_(std::move(warn)), inform_(std::move(inform)) {}

void Log::warn(const std::string& text) const {
  if (!wants(LogLevel::warn)) return;
  if (warn_)
    warn_(text);
  else
    print("warning", text);
}

void Log::info(const std::string& text) const {
  if (!wants(LogLevel::info)) return;
  if (inform_)
    inform_(text);
  else
    print("info", text);
}

void Log::debug(const std::string& text) const {
  if (!wants(LogLevel::debug)) return;
  if (inform_)
    inform_(text);
  else
    print("debug", text);
}

}  // namespace gemm
