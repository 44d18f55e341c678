// Reads what calibration fitted from a table's JSON. Throws an Error that names the field where that cannot be used.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "dispatch/learned_model.h"

namespace gemm {

LearnedModel read_learned_model(const nlohmann::json& object);

// What the networks know a kernel by: a vector for each network, as long as its first layer; of those that the model does
// not have, of either length.
std::vector<FirstLayer> read_traits(const nlohmann::json& array, const std::optional<LearnedModel>& model);

}  // namespace gemm
