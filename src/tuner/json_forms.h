// The JSON forms of problems, configurations, choices and trials, shared by the space file, the trial log and the protocol.
// Reading throws Error with what is wrong.
#pragma once

#include <nlohmann/json.hpp>

#include "kernels/device.h"
#include "tuner/trial.h"

namespace gemm {

using Json = nlohmann::ordered_json;

Json to_json(const KernelConfig& config);
// Reads one configuration; missing parameters keep their default, unknown ones are an error.
KernelConfig config_from_json(const Json& json);

Json to_json(const Problem& problem);  // packed problems only
Problem problem_from_json(const Json& json);

// {"kernel": id, "split_k": 4, "reduction": "ticket", "relayout": "none"}
Json to_json(const Choice& choice);
Choice choice_from_json(const Json& json);

Json to_json(const Outcome& outcome);
Outcome outcome_from_json(const Json& json);

Json to_json(const DeviceInfo& info);
DeviceInfo device_info_from_json(const Json& json);

Stage stage_from_string(const std::string& text);

}  // namespace gemm
