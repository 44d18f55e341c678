// Writes a table as JSON: stable in order, rounded, one kernel or point per line, so that a diff shows what changed.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "dispatch/table.h"
#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

using Json = nlohmann::ordered_json;

double rounded(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  return std::round(value * scale) / scale;
}

double microseconds(double value) { return rounded(value, 3); }

double four_digits(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  return rounded(value, 3 - static_cast<int>(std::floor(std::log10(std::abs(value)))));
}

std::string scalar(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

// {"m": 64, "n": 64}: compact, but with the spaces that make it readable.
std::string one_line(const Json& value) {
  if (!value.is_structured()) return scalar(value);
  std::string text;
  for (const auto& item : value.items()) {
    if (!text.empty()) text += ", ";
    if (value.is_object()) text += scalar(item.key()) + ": ";
    text += one_line(item.value());
  }
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

std::string entry_per_line(const Json& array) {
  if (array.empty()) return "[]";
  std::string text;
  for (const Json& entry : array) text += (text.empty() ? "[\n    " : ",\n    ") + one_line(entry);
  return text + "\n  ]";
}

// An object of the top level over several lines. Strings hold no raw line feed in JSON, so every one here is layout.
std::string indented(const Json& object) {
  std::string text = object.dump(2, ' ', false, Json::error_handler_t::replace);
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 3) text.replace(at, 1, "\n  ");
  return text;
}

Json limits_json(const DeviceLimits& limits) {
  return {{"shared_bytes_per_block", limits.shared_bytes_per_block},
          {"shared_bytes_per_sm", limits.shared_bytes_per_sm},
          {"registers_per_sm", limits.registers_per_sm},
          {"threads_per_sm", limits.threads_per_sm}};
}

Json device_json(const DeviceInfo& device) {
  return {{"name", device.name},
          {"compute_capability", device.limits.compute_capability},
          {"sm_count", device.sm_count},
          {"memory_bytes", device.memory_bytes},
          {"l2_bytes", device.l2_bytes},
          {"sm_clock_mhz", device.sm_clock_mhz},
          {"limits", limits_json(device.limits)}};
}

Json words_json(const std::map<std::string, std::string>& words) {
  Json object = Json::object();
  for (const auto& [key, value] : words) object[key] = value;
  return object;
}

// A layer of a network: numbers of the size of 1.
template <class Layer>
Json layer_json(const Layer& layer) {
  Json array = Json::array();
  for (const float x : layer) array.push_back(rounded(static_cast<double>(x), 4));
  return array;
}

template <class Layers>
Json layers_json(const Layers& layers) {
  Json array = Json::array();
  for (const auto& layer : layers) array.push_back(layer_json(layer));
  return array;
}

Json network_json(const TimeNetwork& network) {
  Json json = {{"problem", layers_json(network.problem)}, {"choice", layers_json(network.choice)},
               {"second", layers_json(network.second)},   {"second_bias", layer_json(network.second_bias)},
               {"last", layer_json(network.last)},        {"last_bias", rounded(static_cast<double>(network.last_bias), 4)}};
  if (network.cublas) json["cublas"] = layer_json(*network.cublas);
  return json;
}

Json kernel_json(const PortfolioKernel& kernel) {
  const KernelConfig& c = kernel.config;
  Json json = {{"id", kernel.id},
               {"family", to_string(c.family)},
               {"BM", c.BM},
               {"BN", c.BN},
               {"BK", c.BK},
               {"WM", c.WM},
               {"WN", c.WN},
               {"WNITER", c.WNITER},
               {"TM", c.TM},
               {"TN", c.TN},
               {"stages", c.stages},
               {"slices", c.slices},
               {"min_blocks", c.min_blocks},
               {"load", to_string(c.load)},
               {"order", to_string(c.order)},
               {"acc_init", to_string(c.acc_init)},
               {"registers", kernel.registers},
               {"spill_bytes", kernel.spill_bytes},
               {"shared_bytes", kernel.shared_bytes},
               {"threads", kernel.threads}};
  if (kernel.model_factor) json["model_factor"] = rounded(*kernel.model_factor, 3);
  if (!kernel.traits.empty()) json["traits"] = layers_json(kernel.traits);
  return json;
}

Json problem_json(const Problem& p) {
  return {{"m", p.m}, {"n", p.n}, {"k", p.k}, {"ops", ops_name(p.op_a, p.op_b)}, {"batch", p.batch}};
}

Json time_json(const TimeStats& time) {
  return {{"median", microseconds(time.median)},
          {"p20", microseconds(time.p20)},
          {"p80", microseconds(time.p80)},
          {"n", time.n}};
}

Json point_json(const TablePoint& point) {
  Json json = {{"problem", problem_json(point.problem)}, {"use", point.use_cublas ? "cublas" : "kernel"}};
  if (!point.kernel.empty()) {
    json["kernel"] = point.kernel;
    json["split_k"] = point.split_k;
    json["reduction"] = to_string(point.reduction);
    if (point.relayout != Relayout::none) json["relayout"] = to_string(point.relayout);
    json["time_us"] = time_json(point.time_us);
    json["tflops"] = four_digits(point.tflops);
    json["max_scaled_error"] = four_digits(point.max_scaled_error);
  }
  if (point.cublas_us) json["cublas_us"] = microseconds(*point.cublas_us);
  if (point.cublaslt_best_us) json["cublaslt_best_us"] = microseconds(*point.cublaslt_best_us);
  json["ties"] = point.ties;
  return json;
}

auto point_order(const TablePoint& point) {
  const Problem& p = point.problem;
  return std::make_tuple(p.op_a, p.op_b, p.batch, p.m, p.n, p.k);
}

// Places of the kernels by id.
std::vector<size_t> portfolio_order(const Table& table) {
  std::vector<size_t> order(table.portfolio.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return table.portfolio[a].id < table.portfolio[b].id; });
  return order;
}

Json portfolio_json(const Table& table) {
  Json array = Json::array();
  for (const size_t place : portfolio_order(table)) array.push_back(kernel_json(table.portfolio[place]));
  return array;
}

Json group_json(const CertificateGroup& group) {
  Json json = {{"problems", group.problems},
               {"of_best", rounded(group.of_best, 4)},
               {"of_best_p5", rounded(group.of_best_p5, 4)},
               {"worst", rounded(group.worst, 4)},
               {"worst_problem", problem_json(group.worst_problem)}};
  if (group.over_cublas) json["over_cublas"] = rounded(*group.over_cublas, 4);
  if (group.of_best_or_cublas) json["of_best_or_cublas"] = rounded(*group.of_best_or_cublas, 4);
  json["cublas_chosen"] = group.cublas_chosen;
  return json;
}

Json certificate_json(const Certificate& certificate) {
  Json json = Json::object();
  if (certificate.box) json["box"] = group_json(*certificate.box);
  if (certificate.outside) json["outside"] = group_json(*certificate.outside);
  return json;
}

std::string learned_model_text(const LearnedModel& model) {
  Json networks = Json::array();
  for (const TimeNetwork& network : model.networks) networks.push_back(network_json(network));
  return "{\n  \"problems\": " + std::to_string(model.problems) + ",\n  \"networks\": " + entry_per_line(networks) + "\n  }";
}

// What only calibrated tables have.
std::string calibrated_text(const Table& table) {
  std::string text;
  if (table.learned_model) text += ",\n  \"learned_model\": " + learned_model_text(*table.learned_model);
  if (table.certificate) text += ",\n  \"certificate\": " + indented(certificate_json(*table.certificate));
  if (table.portfolio_curve.empty()) return text;
  Json curve = Json::array();
  for (const double share : table.portfolio_curve) curve.push_back(rounded(share, 4));
  return text + ",\n  \"portfolio_curve\": " + one_line(curve);
}

Json points_json(std::vector<TablePoint> points) {
  std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return point_order(a) < point_order(b); });
  Json array = Json::array();
  for (const TablePoint& point : points) array.push_back(point_json(point));
  return array;
}

}  // namespace

std::string to_json(const Table& table) {
  return "{\n  \"$schema\": \"table.schema.json\",\n  \"version\": " + std::to_string(table.version) +
         ",\n  \"provenance\": " + scalar(table.provenance) +         //
         ",\n  \"device\": " + indented(device_json(table.device)) +  //
         ",\n  \"environment\": " + indented(words_json(table.environment)) +
         ",\n  \"method\": " + indented(words_json(table.method)) +
         ",\n  \"portfolio\": " + entry_per_line(portfolio_json(table)) +
         ",\n  \"points\": " + entry_per_line(points_json(table.points)) + calibrated_text(table) + "\n}\n";
}

}  // namespace gemm
