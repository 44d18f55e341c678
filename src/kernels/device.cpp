#include "kernels/device.h"

#include <cctype>

namespace gemm {

std::string DeviceInfo::slug() const {
  std::string text;
  bool gap = false;
  for (const char character : name) {
    const auto c = static_cast<unsigned char>(character);
    if (c >= 0x80 || !std::isalnum(c)) {
      gap = true;
      continue;
    }
    if (gap && !text.empty()) text += '-';
    gap = false;
    text += static_cast<char>(std::tolower(c));
  }
  return text.empty() ? "unknown-gpu" : text;
}

}  // namespace gemm
