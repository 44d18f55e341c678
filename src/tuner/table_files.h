// Where a table and its trial log lie, and what earlier runs have left there.
#pragma once

#include <string>
#include <vector>

#include "dispatch/table.h"
#include "kernels/device.h"
#include "tuner/trial_log.h"

namespace gemm {

// Name, multiprocessors and memory: "NVIDIA H200, 132 SMs, 139 GiB".
std::string device_identity(const DeviceInfo& device);

// Where the table of a device goes by default.
std::string default_table_path(const DeviceInfo& device);

// The table itself, whichever link names it: its log and the log's lock are beside it.
std::string without_links(const std::string& path);

// "configs/nvidia-h200.json" -> "configs/nvidia-h200.jsonl".
std::string log_path(const std::string& table_path);

// Of runs on this device with these configurations.
LogHeader log_header(const DeviceInfo& device, const std::vector<KernelConfig>& configs);

// The table that is already there, which the new one adds to; an empty one where there is none. Throws Error where there is
// a file that must not be replaced. Warnings go to stderr.
Table older_table(const std::string& path, const DeviceInfo& device);

// What earlier runs with these configurations left in the trial log beside a table. Reads only.
EvidenceMap evidence_beside(const std::string& table_path, const DeviceInfo& device,
                            const std::vector<KernelConfig>& configs);

}  // namespace gemm
