#include "tuner/json_forms.h"

#include <algorithm>
#include <array>

#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

// Each integer parameter with its name: one list for reading and writing.
struct IntParameter {
  const char* name;
  int KernelConfig::*member;
};
constexpr std::array<IntParameter, 11> kIntParameters = {{{"BM", &KernelConfig::BM},
                                                          {"BN", &KernelConfig::BN},
                                                          {"BK", &KernelConfig::BK},
                                                          {"WM", &KernelConfig::WM},
                                                          {"WN", &KernelConfig::WN},
                                                          {"WNITER", &KernelConfig::WNITER},
                                                          {"TM", &KernelConfig::TM},
                                                          {"TN", &KernelConfig::TN},
                                                          {"stages", &KernelConfig::stages},
                                                          {"slices", &KernelConfig::slices},
                                                          {"min_blocks", &KernelConfig::min_blocks}}};

template <class Enum>
void read_enum(const Json& value, const std::string& name, Enum& result) {
  if (!value.is_string() || !from_string(value.get<std::string>(), result))
    throw Error("parameter '" + name + "' has the unknown value " + value.dump());
}

constexpr std::array<Stage, 5> kStages = {Stage::calibration, Stage::certificate, Stage::screen, Stage::refine,
                                          Stage::finals};
constexpr std::array<Invalidity, 5> kInvalidities = {Invalidity::correct, Invalidity::compile, Invalidity::runtime,
                                                     Invalidity::correctness, Invalidity::timeout};

}  // namespace

const char* to_string(Stage stage) {
  switch (stage) {
    case Stage::calibration: return "calibration";
    case Stage::certificate: return "certificate";
    case Stage::screen: return "screen";
    case Stage::refine: return "refine";
    default: return "final";
  }
}

const char* to_string(Invalidity invalidity) {
  switch (invalidity) {
    case Invalidity::correct: return "correct";
    case Invalidity::compile: return "compile";
    case Invalidity::runtime: return "runtime";
    case Invalidity::correctness: return "correctness";
    default: return "timeout";
  }
}

Stage stage_from_string(const std::string& text) {
  for (Stage stage : kStages)
    if (text == to_string(stage)) return stage;
  throw Error("unknown stage '" + text + "'");
}

const Trial* Evidence::find(const Choice& choice, Stage stage) const {
  for (auto trial = trials.rbegin(); trial != trials.rend(); ++trial)
    if (trial->stage == stage && trial->choice == choice) return &*trial;
  return nullptr;
}

bool Evidence::only_calibration() const {
  return !trials.empty() &&
         std::all_of(trials.begin(), trials.end(), [](const Trial& t) { return is_of_calibration(t.stage); });
}

Json to_json(const KernelConfig& config) {
  Json json;
  for (const IntParameter& parameter : kIntParameters) json[parameter.name] = config.*parameter.member;
  json["family"] = to_string(config.family);
  json["load"] = to_string(config.load);
  json["order"] = to_string(config.order);
  json["acc_init"] = to_string(config.acc_init);
  return json;
}

KernelConfig config_from_json(const Json& json) {
  if (!json.is_object()) throw Error("a configuration must be an object, not " + json.dump());
  KernelConfig config;
  for (const auto& [name, value] : json.items()) {
    bool known = true;
    if (name == "family")
      read_enum(value, name, config.family);
    else if (name == "load")
      read_enum(value, name, config.load);
    else if (name == "order")
      read_enum(value, name, config.order);
    else if (name == "acc_init")
      read_enum(value, name, config.acc_init);
    else
      known = false;
    for (const IntParameter& parameter : kIntParameters) {
      if (name != parameter.name) continue;
      if (!value.is_number_integer() || value.get<int64_t>() < 1 || value.get<int64_t>() > 65536)
        throw Error("parameter '" + name + "' must be a positive whole number, not " + value.dump());
      config.*parameter.member = value.get<int>();
      known = true;
    }
    if (!known) throw Error("unknown parameter '" + name + "'");
  }
  return config;
}

Json to_json(const Problem& p) {
  return Json{{"m", p.m}, {"n", p.n}, {"k", p.k}, {"ops", ops_name(p.op_a, p.op_b)}, {"batch", p.batch}};
}

Problem problem_from_json(const Json& json) {
  const auto ops = json.at("ops").get<std::string>();
  Op a = Op::N, b = Op::N;
  if (ops.size() != 2 || !op_from_char(ops[0], a) || !op_from_char(ops[1], b)) throw Error("unknown ops '" + ops + "'");
  return packed_problem(json.at("m").get<int64_t>(), json.at("n").get<int64_t>(), json.at("k").get<int64_t>(), a, b,
                        json.at("batch").get<int64_t>());
}

Json to_json(const Choice& choice) {
  return Json{{"kernel", config_id(choice.config)},
              {"split_k", choice.split_k},
              {"reduction", to_string(choice.reduction)},
              {"relayout", to_string(choice.relayout)}};
}

Choice choice_from_json(const Json& json) {
  const auto id = json.at("kernel").get<std::string>();
  const std::optional<KernelConfig> config = config_from_id(id);
  if (!config) throw Error("unknown kernel id '" + id + "'");
  Choice choice{*config, json.at("split_k").get<int>(), Reduction::ticket};
  read_enum(json.at("reduction"), "reduction", choice.reduction);
  read_enum(json.at("relayout"), "relayout", choice.relayout);
  return choice;
}

Json to_json(const Outcome& outcome) {
  return Json{{"invalidity", to_string(outcome.invalidity)},
              {"reason", outcome.reason},
              {"compile_ms", outcome.compile_ms},
              {"registers", outcome.registers},
              {"spill_bytes", outcome.spill_bytes},
              {"shared_bytes", outcome.shared_bytes},
              {"max_scaled_error", outcome.max_scaled_error},
              {"times_us", outcome.times_us}};
}

Outcome outcome_from_json(const Json& json) {
  Outcome outcome;
  const auto invalidity = json.at("invalidity").get<std::string>();
  bool known = false;
  for (Invalidity candidate : kInvalidities) {
    if (invalidity != to_string(candidate)) continue;
    outcome.invalidity = candidate;
    known = true;
  }
  if (!known) throw Error("unknown invalidity '" + invalidity + "'");
  outcome.reason = json.at("reason").get<std::string>();
  outcome.compile_ms = json.at("compile_ms").get<double>();
  outcome.registers = json.at("registers").get<int>();
  outcome.spill_bytes = json.at("spill_bytes").get<int>();
  outcome.shared_bytes = json.at("shared_bytes").get<int>();
  outcome.max_scaled_error = json.at("max_scaled_error").get<double>();
  outcome.times_us = json.at("times_us").get<std::vector<double>>();
  return outcome;
}

Json to_json(const DeviceInfo& info) {
  return Json{{"name", info.name},
              {"uuid", info.uuid},
              {"emulated", info.emulated},
              {"index", info.index},
              {"sm_count", info.sm_count},
              {"memory_bytes", info.memory_bytes},
              {"l2_bytes", info.l2_bytes},
              {"sm_clock_mhz", info.sm_clock_mhz},
              {"driver", info.driver},
              {"cuda_runtime", info.cuda_runtime},
              {"compute_capability", info.limits.compute_capability},
              {"shared_bytes_per_block", info.limits.shared_bytes_per_block},
              {"shared_bytes_per_sm", info.limits.shared_bytes_per_sm},
              {"registers_per_sm", info.limits.registers_per_sm},
              {"threads_per_sm", info.limits.threads_per_sm}};
}

DeviceInfo device_info_from_json(const Json& json) {
  DeviceInfo info;
  info.name = json.at("name").get<std::string>();
  info.uuid = json.at("uuid").get<std::string>();
  info.emulated = json.at("emulated").get<bool>();
  info.index = json.at("index").get<int>();
  info.sm_count = json.at("sm_count").get<int>();
  info.memory_bytes = json.at("memory_bytes").get<int64_t>();
  info.l2_bytes = json.at("l2_bytes").get<int64_t>();
  info.sm_clock_mhz = json.at("sm_clock_mhz").get<int>();
  info.driver = json.at("driver").get<std::string>();
  info.cuda_runtime = json.at("cuda_runtime").get<std::string>();
  info.limits.compute_capability = json.at("compute_capability").get<int>();
  info.limits.shared_bytes_per_block = json.at("shared_bytes_per_block").get<int>();
  info.limits.shared_bytes_per_sm = json.at("shared_bytes_per_sm").get<int>();
  info.limits.registers_per_sm = json.at("registers_per_sm").get<int>();
  info.limits.threads_per_sm = json.at("threads_per_sm").get<int>();
  return info;
}

}  // namespace gemm
