#include "tuner/formatted.h"

#include <cstdarg>
#include <cstdio>

namespace gemm {

std::string formatted(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text(static_cast<size_t>(std::vsnprintf(nullptr, 0, format, arguments)), '\0');
  va_end(arguments);
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size() + 1, format, arguments);
  va_end(arguments);
  return text;
}

}  // namespace gemm
