// SHA-256 (FIPS 180-4): names and checks the entries of the cubin cache.
#pragma once

#include <string>
#include <string_view>

namespace gemm {

// The digest as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view data);

}  // namespace gemm
