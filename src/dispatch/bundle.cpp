#include "dispatch/bundle.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "dispatch/json_text.h"
#include "kernels/file_io.h"
#include "kernels/sha256.h"

namespace gemm {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMagic = "gemm bundle ";
constexpr int kBundleVersion = 1;
// Far above any bundle: all variants of 64 kernels take about 200 MB.
constexpr int64_t kMostBundleBytes = int64_t{1} << 30;

// The parts of a bundle whose checksum is right, as places in its content.
struct Parts {
  std::string_view header;
  size_t payload = 0;  // where it begins
};

// Takes the first line off `rest`; throws where there is no line.
std::string_view take_line(std::string_view& rest) {
  const size_t end = rest.find('\n');
  if (end == std::string_view::npos) throw Error("truncated: it ends in its first lines");
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return line;
}

// Takes a number and the character behind it, if there is one.
size_t take_number(std::string_view& text) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) throw Error("damaged: its first lines are not those of a bundle");
  text.remove_prefix(std::min(text.size(), static_cast<size_t>(end - text.data()) + 1));
  return number;
}

void check_version(std::string_view line) {
  line.remove_prefix(kMagic.size());
  const size_t version = take_number(line);
  if (version != kBundleVersion)
    throw Error("it has bundle version " + std::to_string(version) + ", this library reads version " +
                std::to_string(kBundleVersion) + "; use the library that wrote it, or bundle again");
}

Parts check_envelope(std::string_view content) {
  std::string_view rest = content;
  check_version(take_line(rest));
  const std::string_view digest = take_line(rest);
  const std::string_view hashed = rest;
  std::string_view sizes = take_line(rest);
  const size_t header_bytes = take_number(sizes), payload_bytes = take_number(sizes);
  if (header_bytes > rest.size() || payload_bytes > rest.size() - header_bytes)
    throw Error("truncated: it should have " + std::to_string(header_bytes + payload_bytes) +
                " bytes after its first lines, " + std::to_string(rest.size()) + " are there");
  if (sha256_hex(hashed) != digest) throw Error("damaged: its checksum is not right");
  return {rest.substr(0, header_bytes), static_cast<size_t>(rest.data() - content.data()) + header_bytes};
}

// A size or an offset; so small that sums of two do not overflow.
size_t length(const nlohmann::json& object, const char* name) {
  const nlohmann::json& value = object.at(name);
  if (!value.is_number_unsigned() || value.get<uint64_t>() > kMostBundleBytes)
    throw Error(std::string("\"") + name + "\" is no size or offset");
  return value.get<size_t>();
}

LoadedTable read_checked(std::string content, std::vector<std::string>* warnings) {
  const Parts parts = check_envelope(content);
  const nlohmann::json header = parse_json(std::string(parts.header)).value_or_throw();
  if (header.at("kernel_sources").get<std::string>() != kernel_sources_digest())
    throw Error("its kernels were compiled by gemm " + header.at("gemm_version").get<std::string>() +
                " from other sources than those of this library; bundle again with the gemm-tune that belongs to it");
  LoadedTable loaded;
  loaded.table = parse_table(content.substr(parts.payload, length(header, "table_bytes")), warnings).value_or_throw();
  loaded.kernels_compute_capability = header.at("compute_capability").get<int>();
  auto kernels = std::make_shared<CubinStore>(std::move(content), header.at("arch").get<std::string>());
  for (const nlohmann::json& kernel : header.at("kernels"))
    kernels->add(kernel.at("key").get<std::string>(), parts.payload + length(kernel, "offset"), length(kernel, "bytes"));
  loaded.kernels = std::move(kernels);
  return loaded;
}

// Why the kernels that came with a table cannot run on the device, or an empty string.
std::string why_kernels_unfit(const LoadedTable& loaded, const DeviceInfo& device) {
  const int own = loaded.kernels_compute_capability, there = device.limits.compute_capability;
  if (!loaded.kernels || own == there) return {};
  const auto text = [](int capability) { return std::to_string(capability / 10) + "." + std::to_string(capability % 10); };
  return "its kernels are machine code for compute capability " + text(own) + " (" + loaded.kernels->arch() + ", made for " +
         loaded.table.device.name + "), and " + device.name + " has " + text(there) +
         "; tune and bundle for this GPU, or use the table alone";
}

}  // namespace

bool is_bundle(std::string_view beginning) { return beginning.starts_with(kMagic); }

std::string write_bundle(const Table& table, const std::vector<BundledKernel>& kernels, const std::string& gemm_version,
                         const std::string& nvrtc_version) {
  std::string payload = to_json(table);
  const Json head = {{"gemm_version", gemm_version},
                     {"nvrtc", nvrtc_version},
                     {"kernel_sources", kernel_sources_digest()},
                     {"compute_capability", table.device.limits.compute_capability},
                     {"arch", kernels.front().cubin.target.arch},
                     {"device", table.device.name},
                     {"table_bytes", payload.size()}};
  std::string header = head.dump();
  header.back() = ',';
  header += "\"kernels\":[";
  for (const BundledKernel& kernel : kernels) {
    const Json entry = {
        {"name", kernel.name}, {"key", kernel.key}, {"offset", payload.size()}, {"bytes", kernel.cubin.image.size()}};
    header += (&kernel == &kernels.front() ? "\n" : ",\n") + entry.dump();
    payload += kernel.cubin.image;
  }
  header += "\n]}\n";
  const std::string hashed = std::to_string(header.size()) + " " + std::to_string(payload.size()) + "\n" + header + payload;
  return std::string(kMagic) + std::to_string(kBundleVersion) + "\n" + sha256_hex(hashed) + "\n" + hashed;
}

Result<LoadedTable> read_bundle(std::string content, std::vector<std::string>* warnings) {
  try {
    return read_checked(std::move(content), warnings);
  } catch (const std::exception& error) {  // of ours, or of the JSON library where a field is missing
    return Failure{error.what()};
  }
}

Result<LoadedTable> load_table_or_bundle(const std::string& path, std::vector<std::string>* warnings) {
  Result<std::string> beginning = read_beginning(path, kMagic.size());
  if (!beginning || !is_bundle(*beginning)) {
    Result<Table> table = load_table(path, warnings);
    if (!table) return Failure{table.error()};
    return LoadedTable{std::move(*table), nullptr, 0};
  }
  Result<std::string> content = read_regular_file(path, kMostBundleBytes);
  if (!content) return Failure{"cannot read bundle '" + path + "': " + content.error()};
  Result<LoadedTable> loaded = read_bundle(std::move(*content), warnings);
  if (!loaded) return Failure{"bundle '" + path + "': " + loaded.error()};
  return loaded;
}

Result<LoadedTable> load_for_device(const std::string& path, const DeviceInfo& device, std::vector<std::string>* warnings) {
  Result<LoadedTable> loaded = load_table_or_bundle(path, warnings);
  if (!loaded) return loaded;
  if (const std::string why = why_kernels_unfit(*loaded, device); !why.empty())
    return Failure{"bundle '" + path + "': " + why};
  if (match(loaded->table, device) == TableMatch::unusable)
    return Failure{"table '" + path + "' is of a newer kind of GPU (" + loaded->table.device.name + ") than " + device.name +
                   "; tune this GPU with gemm-tune"};
  return loaded;
}

}  // namespace gemm
