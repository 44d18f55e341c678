#include "dispatch/learned_model_parse.h"

#include <nlohmann/json.hpp>

#include "dispatch/json_fields.h"

namespace gemm {
namespace {

using namespace json_fields;
using nlohmann::json;

constexpr double kMostWeight = 1000;  // of a network, either way

void check_length(const json& array, size_t length, const char* name, const char* of_what) {
  if (!array.is_array() || array.size() != length) wrong(name, array, "an array of " + std::to_string(length) + of_what);
}

// One row of a network's weights, of which the first `length` are written and the others zero.
template <size_t Size>
std::array<float, Size> read_layer(const json& array, const char* name, size_t length = Size) {
  check_length(array, length, name, " numbers");
  std::array<float, Size> layer{};
  for (size_t i = 0; i < length; ++i) layer[i] = static_cast<float>(element(array, i, name, -kMostWeight, kMostWeight));
  return layer;
}

// The same of rows.
template <size_t Rows, size_t Size>
void read_layers(const json& object, const char* name, std::array<std::array<float, Size>, Rows>& layers, size_t rows,
                 size_t length) {
  const json& array = field(object, name);
  check_length(array, rows, name, " arrays");
  for (size_t i = 0; i < rows; ++i) layers[i] = read_layer<Size>(array[i], name, length);
}

// The length of a first layer: of older tables where it is just that, else what it must be.
size_t first_layer_of(const json& layer) {
  return layer.is_array() && layer.size() == kOlderFirstLayer ? kOlderFirstLayer : kFirstLayer;
}

TimeNetwork read_network(const json& object) {
  TimeNetwork network;
  const json& problem = field(object, "problem");
  if (problem.is_array() && !problem.empty()) network.first_layer = first_layer_of(problem.front());
  const size_t first = network.first_layer;
  read_layers(object, "problem", network.problem, kProblemInputs, first);
  read_layers(object, "choice", network.choice, kChoiceInputs, first);
  read_layers(object, "second", network.second, first, kSecondLayer);
  network.second_bias = read_layer<kSecondLayer>(field(object, "second_bias"), "second_bias");
  network.last = read_layer<kSecondLayer>(field(object, "last"), "last");
  network.last_bias = read_layer<1>(json::array({field(object, "last_bias")}), "last_bias")[0];
  if (object.contains("cublas")) network.cublas = read_layer<kFirstLayer>(object["cublas"], "cublas", first);
  return network;
}

}  // namespace

LearnedModel read_learned_model(const json& object) {
  LearnedModel model;
  model.problems = small_integer(object, "problems", 0);
  const json& networks = field(object, "networks");
  if (!networks.is_array() || networks.empty() || networks.size() > LearnedModel::kMostNetworks)
    wrong("networks", networks, "an array of 1 to " + std::to_string(LearnedModel::kMostNetworks) + " networks");
  for (const json& network : networks) model.networks.push_back(read_network(network));
  return model;
}

std::vector<FirstLayer> read_traits(const json& array, const std::optional<LearnedModel>& model) {
  if (!array.is_array() || array.size() > LearnedModel::kMostNetworks) wrong("traits", array, "an array of arrays");
  std::vector<FirstLayer> traits;
  for (const json& layer : array) {
    const bool has_network = model && traits.size() < model->networks.size();
    const size_t length = has_network ? model->networks[traits.size()].first_layer : first_layer_of(layer);
    traits.push_back(read_layer<kFirstLayer>(layer, "traits", length));
  }
  return traits;
}

}  // namespace gemm
