#include "dispatch/learned_model_parse.h"

#include <nlohmann/json.hpp>

#include "dispatch/json_fields.h"

namespace gemm {
namespace {

using namespace json_fields;
using nlohmann::json;

constexpr double kMostWeight = 1000;  // of a network, either way
// The first layer of older tables. With zeros for the rest, networks say the same.
constexpr size_t kOlderFirstLayer = 32;

// Throws unless there is one element for each of `Size`.
template <size_t Size>
void check_length(const json& array, const char* name, const char* of_what) {
  const bool is_older = Size == kFirstLayer && array.is_array() && array.size() == kOlderFirstLayer;
  if (!array.is_array() || (array.size() != Size && !is_older))
    wrong(name, array, "an array of " + std::to_string(Size) + of_what);
}

// One row of a network's weights.
template <size_t Size>
std::array<float, Size> read_layer(const json& array, const char* name) {
  check_length<Size>(array, name, " numbers");
  std::array<float, Size> layer{};
  for (size_t i = 0; i < array.size(); ++i)
    layer[i] = static_cast<float>(element(array, i, name, -kMostWeight, kMostWeight));
  return layer;
}

template <size_t Rows, size_t Size>
void read_layers(const json& object, const char* name, std::array<std::array<float, Size>, Rows>& layers) {
  const json& array = field(object, name);
  check_length<Rows>(array, name, " arrays");
  for (size_t i = 0; i < array.size(); ++i) layers[i] = read_layer<Size>(array[i], name);
}

TimeNetwork read_network(const json& object) {
  TimeNetwork network;
  read_layers(object, "problem", network.problem);
  read_layers(object, "choice", network.choice);
  read_layers(object, "second", network.second);
  network.second_bias = read_layer<kSecondLayer>(field(object, "second_bias"), "second_bias");
  network.last = read_layer<kSecondLayer>(field(object, "last"), "last");
  network.last_bias = read_layer<1>(json::array({field(object, "last_bias")}), "last_bias")[0];
  if (object.contains("cublas")) network.cublas = read_layer<kFirstLayer>(object["cublas"], "cublas");
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

std::vector<FirstLayer> read_traits(const json& array) {
  if (!array.is_array() || array.size() > LearnedModel::kMostNetworks) wrong("traits", array, "an array of arrays");
  std::vector<FirstLayer> traits;
  for (const json& layer : array) traits.push_back(read_layer<kFirstLayer>(layer, "traits"));
  return traits;
}

}  // namespace gemm
