#include "tuner/table_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <utility>

#include "tuner/space.h"
#include "tuner/table_builder.h"

namespace gemm {

std::string device_identity(const DeviceInfo& device) {
  return device.name + ", " + std::to_string(device.sm_count) + " SMs, " + std::to_string(device.memory_bytes >> 30) +
         " GiB";
}

std::string default_table_path(const DeviceInfo& device) {
  struct stat info {};
  const bool has_configs = ::stat("configs", &info) == 0 && S_ISDIR(info.st_mode);
  return (has_configs ? "configs/" : "") + device.slug() + ".json";
}

std::string without_links(const std::string& path) {
  return std::filesystem::is_symlink(path) ? std::filesystem::weakly_canonical(path).string() : path;
}

std::string log_path(const std::string& table_path) { return table_path + (table_path.ends_with(".json") ? "l" : ".jsonl"); }

LogHeader log_header(const DeviceInfo& device, const std::vector<KernelConfig>& configs) {
  return {device_identity(device), hash_of(configs), kernel_source_hash(), kMethodVersion};
}

Table older_table(const std::string& path, const DeviceInfo& device) {
  if (::access(path.c_str(), F_OK) != 0) return {};
  std::vector<std::string> warnings;
  Result<Table> table = load_table(path, &warnings);
  if (!table)
    throw Error("'" + path + "' is there but is no table (" + table.error() +
                "); move it away, or choose another name with -o");
  if (match(*table, device) != TableMatch::exact)
    throw Error("'" + path + "' is the table of " + device_identity(table->device) + ", not of " + device_identity(device) +
                "; choose another name with -o");
  for (const std::string& warning : warnings) std::fprintf(stderr, "%s: %s\n", path.c_str(), warning.c_str());
  return std::move(*table);
}

EvidenceMap evidence_beside(const std::string& table_path, const DeviceInfo& device,
                            const std::vector<KernelConfig>& configs) {
  return read_evidence(log_path(without_links(table_path)), log_header(device, configs));
}

}  // namespace gemm
