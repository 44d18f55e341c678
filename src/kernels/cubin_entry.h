// The file format of one entry of the cubin cache: a magic line with the version, a SHA-256 of what follows, then the key,
// the architecture, PTX or not, the log and the image, each with its size before it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/nvrtc_compiler.h"

namespace gemm {

std::string write_cubin_entry(const std::string& key, const Cubin& cubin);

// The cubin, or nothing where `entry` is damaged, of another version, or of another key.
std::optional<Cubin> read_cubin_entry(std::string_view entry, std::string_view key);

}  // namespace gemm
