#include "dispatch/table_search.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace gemm {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> json_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".json") files.push_back(it->path().string());
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<FoundTable> own_table(const std::vector<std::string>& folders, const DeviceInfo& device,
                                    std::vector<std::string>* warnings) {
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + device.slug() + ".json";
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    Result<Table> table = load_table(path, warnings);
    if (!table)
      warnings->push_back(table.error());
    else if (match(*table, device) != TableMatch::unusable)
      return FoundTable{std::move(*table), path};
  }
  return std::nullopt;
}

// Smaller is better: exact tables first, then by the difference in size.
int mismatch(const Table& table, const DeviceInfo& device) {
  if (match(table, device) == TableMatch::exact) return -1;
  return std::abs(table.device.sm_count - device.sm_count);
}

}  // namespace

std::vector<std::string> config_folders() {
  std::vector<std::string> folders;
  Dl_info self = {};
  if (dladdr(reinterpret_cast<const void*>(&config_folders), &self) != 0 && self.dli_fname) {
    std::error_code error;
    const fs::path file = fs::canonical(self.dli_fname, error);
    if (!error) folders.push_back((file.parent_path() / GEMM_CONFIGS_FROM_LIBRARY).lexically_normal().string());
  }
  if (folders.empty() || folders.front() != GEMM_INSTALLED_CONFIGS) folders.emplace_back(GEMM_INSTALLED_CONFIGS);
  return folders;
}

std::optional<FoundTable> search_tables(const std::vector<std::string>& folders, const DeviceInfo& device,
                                        std::vector<std::string>* warnings) {
  if (std::optional<FoundTable> own = own_table(folders, device, warnings)) return own;
  std::optional<FoundTable> best;
  std::vector<std::string> best_warnings;
  for (const std::string& folder : folders)
    for (const std::string& path : json_files(folder)) {
      std::vector<std::string> found_warnings;
      Result<Table> table = load_table(path, &found_warnings);
      if (!table || table->device.limits.compute_capability != device.limits.compute_capability) continue;
      if (best && mismatch(best->table, device) <= mismatch(*table, device)) continue;
      best = FoundTable{std::move(*table), path};
      best_warnings = std::move(found_warnings);
    }
  warnings->insert(warnings->end(), best_warnings.begin(), best_warnings.end());
  return best;
}

}  // namespace gemm
