#include "kernels/cubin_entry.h"

#include <charconv>
#include <system_error>

#include "kernels/sha256.h"

namespace gemm {
namespace {

constexpr std::string_view kMagic = "gemm cubin 1\n";
constexpr size_t kDigestBytes = 64;

std::string sized(std::string_view field) {
  std::string text = std::to_string(field.size()) + "\n";
  text += field;
  return text;
}

// Takes a field with its size from the front of `body`.
std::optional<std::string_view> take_field(std::string_view& body) {
  size_t size = 0;
  const char* const end = body.data() + body.size();
  const auto [rest, error] = std::from_chars(body.data(), end, size);
  if (error != std::errc() || rest == end || *rest != '\n') return std::nullopt;
  body.remove_prefix(static_cast<size_t>(rest - body.data()) + 1);
  if (size > body.size()) return std::nullopt;
  const std::string_view field = body.substr(0, size);
  body.remove_prefix(size);
  return field;
}

}  // namespace

std::string write_cubin_entry(const std::string& key, const Cubin& cubin) {
  const std::string body = sized(key) + sized(cubin.target.arch) + sized(cubin.target.is_ptx ? "ptx" : "cubin") +
                           sized(cubin.log) + sized(cubin.image);
  return std::string(kMagic) + sha256_hex(body) + body;
}

std::optional<Cubin> read_cubin_entry(std::string_view entry, std::string_view key) {
  if (!entry.starts_with(kMagic) || entry.size() < kMagic.size() + kDigestBytes) return std::nullopt;
  entry.remove_prefix(kMagic.size());
  const std::string_view digest = entry.substr(0, kDigestBytes);
  std::string_view body = entry.substr(kDigestBytes);
  if (sha256_hex(body) != digest) return std::nullopt;

  const auto stored_key = take_field(body);
  if (!stored_key || *stored_key != key) return std::nullopt;
  const auto arch = take_field(body), kind = take_field(body), log = take_field(body), image = take_field(body);
  if (!arch || !kind || !log || !image || image->empty() || !body.empty()) return std::nullopt;
  return Cubin{std::string(*image), std::string(*log), {std::string(*arch), *kind == "ptx"}};
}

}  // namespace gemm
