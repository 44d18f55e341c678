// Where a context finds its table when nobody names one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/table.h"
#include "kernels/device.h"

namespace gemm {

struct FoundTable {
  Table table;
  std::string path;
  std::shared_ptr<const CubinStore> kernels = nullptr;  // of a bundle, to be handed to Device::use_cubins
};

// The installed share/gemm/configs: beside the library's own file, then below the prefix it was configured for.
std::vector<std::string> config_folders();

// The first <slug>.json of the folders that is usable, else the best table there of the same compute capability: one that
// matches exactly, else the one with the nearest number of SMs. *warnings tells what is wrong with a <slug>.json and with
// the table that is returned; files that are no tables are passed over.
std::optional<FoundTable> search_tables(const std::vector<std::string>& folders, const DeviceInfo& device,
                                        std::vector<std::string>* warnings);

}  // namespace gemm
