// printf into a string, for reports.
#pragma once

#include <string>

namespace gemm {

[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

}  // namespace gemm
