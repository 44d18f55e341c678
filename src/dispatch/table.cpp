#include "dispatch/table.h"

#include <cmath>

#include "kernels/file_io.h"

namespace gemm {
namespace {

// Far above any real table (a point is about 500 bytes), so that a wrong path cannot eat the host's memory.
constexpr int64_t kMaxTableBytes = int64_t{64} << 20;

bool within_5_percent(int64_t a, int64_t b) { return std::abs(static_cast<double>(a - b)) <= 0.05 * static_cast<double>(b); }

}  // namespace

Choice choice_of(const TablePoint& point, const KernelConfig& config) {
  return {config, point.split_k, point.reduction, point.relayout};
}

const PortfolioKernel* Table::find_kernel(const std::string& id) const {
  for (const PortfolioKernel& kernel : portfolio)
    if (kernel.id == id) return &kernel;
  return nullptr;
}

Result<Table> load_table(const std::string& path, std::vector<std::string>* warnings) {
  const Result<std::string> text = read_regular_file(path, kMaxTableBytes);
  if (!text) return Failure{"cannot read table '" + path + "': " + text.error()};
  Result<Table> table = parse_table(*text, warnings);
  if (!table) return Failure{"table '" + path + "': " + table.error()};
  return table;
}

Result<bool> save_table(const Table& table, const std::string& path) {
  Result<bool> written = replace_file(path, to_json(table));
  if (!written) return Failure{"cannot write table '" + path + "': " + written.error()};
  return written;
}

TableMatch match(const Table& table, const DeviceInfo& device) {
  const DeviceInfo& own = table.device;
  if (own.limits.compute_capability > device.limits.compute_capability) return TableMatch::unusable;
  // The name does not decide: one name covers GPUs of several sizes, and a MIG slice changes it.
  const bool same = own.limits.compute_capability == device.limits.compute_capability && own.sm_count == device.sm_count &&
                    within_5_percent(own.memory_bytes, device.memory_bytes) && table.provenance == device.provenance();
  return same ? TableMatch::exact : TableMatch::borrowed;
}

}  // namespace gemm
