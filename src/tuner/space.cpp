#include "tuner/space.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <unordered_set>

#include "dispatch/json_text.h"
#include "kernels/kernel_spec.h"
#include "tuner/json_forms.h"

namespace gemm {
namespace {

constexpr size_t kMostCombinations = 50'000'000;

struct IntList {
  const char* name;
  std::vector<int> SpaceFamily::*values;
  int KernelConfig::*member;
};
constexpr IntList kIntLists[] = {{"BM", &SpaceFamily::BM, &KernelConfig::BM},
                                 {"BN", &SpaceFamily::BN, &KernelConfig::BN},
                                 {"BK", &SpaceFamily::BK, &KernelConfig::BK},
                                 {"WM", &SpaceFamily::WM, &KernelConfig::WM},
                                 {"WN", &SpaceFamily::WN, &KernelConfig::WN},
                                 {"WNITER", &SpaceFamily::WNITER, &KernelConfig::WNITER},
                                 {"TM", &SpaceFamily::TM, &KernelConfig::TM},
                                 {"TN", &SpaceFamily::TN, &KernelConfig::TN},
                                 {"stages", &SpaceFamily::stages, &KernelConfig::stages},
                                 {"slices", &SpaceFamily::slices, &KernelConfig::slices},
                                 {"min_blocks", &SpaceFamily::min_blocks, &KernelConfig::min_blocks}};

// Reads the values of one parameter through config_from_json, which knows names and ranges.
template <class Value, class Member>
std::vector<Value> read_values(const Json& family, const char* name, Member member) {
  if (!family.contains(name)) throw Error(std::string("parameter '") + name + "' is missing");
  const Json& list = family.at(name);
  if (!list.is_array() || list.empty()) throw Error(std::string("parameter '") + name + "' must be a list of values");
  std::vector<Value> values;
  for (const Json& value : list) values.push_back(config_from_json(Json{{name, value}}).*member);
  return values;
}

SpaceFamily read_family(const Json& json) {
  SpaceFamily family;
  family.name = json.at("name").get<std::string>();
  const Json parameters = to_json(KernelConfig{});
  for (const auto& [key, value] : json.items())
    if (key != "name" && key != "comment" && !parameters.contains(key)) throw Error("unknown parameter '" + key + "'");
  if (json.contains("family")) family.family = config_from_json(Json{{"family", json.at("family")}}).family;
  for (const IntList& list : kIntLists) family.*list.values = read_values<int>(json, list.name, list.member);
  family.load = read_values<LoadPath>(json, "load", &KernelConfig::load);
  family.order = read_values<FmaOrder>(json, "order", &KernelConfig::order);
  family.acc_init = read_values<AccInit>(json, "acc_init", &KernelConfig::acc_init);
  return family;
}

// Only the kind of kernel has a default: another one would be a guess at what was meant.
KernelConfig read_extra(const Json& json) {
  const KernelConfig config = config_from_json(json);
  const Json parameters = to_json(config);
  for (const auto& [name, value] : parameters.items())
    if (name != "family" && !json.contains(name)) throw Error("parameter '" + name + "' is missing");
  return config;
}

// Counts that do not fit stay at the largest one.
size_t product(size_t a, size_t b) { return a != 0 && b > SIZE_MAX / a ? SIZE_MAX : a * b; }
size_t sum(size_t a, size_t b) { return b > SIZE_MAX - a ? SIZE_MAX : a + b; }

void visit_family(const SpaceFamily& family, size_t depth, KernelConfig& config,
                  const std::function<void(const KernelConfig&)>& visit) {
  if (depth < std::size(kIntLists)) {
    for (int value : family.*kIntLists[depth].values) {
      config.*kIntLists[depth].member = value;
      visit_family(family, depth + 1, config, visit);
    }
    return;
  }
  for (LoadPath load : family.load)
    for (FmaOrder order : family.order)
      for (AccInit acc_init : family.acc_init) {
        config.load = load;
        config.order = order;
        config.acc_init = acc_init;
        visit(config);
      }
}

}  // namespace

size_t SpaceFamily::combinations() const {
  size_t count = product(product(load.size(), order.size()), acc_init.size());
  for (const IntList& list : kIntLists) count = product(count, (this->*list.values).size());
  return count;
}

size_t SearchSpace::combinations() const {
  size_t count = extra.size();
  for (const SpaceFamily& family : families) count = sum(count, family.combinations());
  return count;
}

void SearchSpace::for_each(const std::function<void(const KernelConfig&)>& visit) const {
  for (const SpaceFamily& family : families) {
    KernelConfig config;
    config.family = family.family;
    visit_family(family, 0, config, visit);
  }
  for (const KernelConfig& config : extra) visit(config);
}

Result<SearchSpace> parse_space(const std::string& text, const std::string& name) {
  SearchSpace space;
  std::string where = "top level";
  try {
    const Json json = parse_json(text).value_or_throw();
    if (!json.is_object()) throw Error("must be an object with 'families' or 'extra'");
    for (const auto& [key, value] : json.items())
      if (key != "families" && key != "extra" && key != "comment") throw Error("unknown key '" + key + "'");
    for (const Json& family : json.value("families", Json::array())) {
      where = "family " + std::to_string(space.families.size() + 1);
      if (!family.is_object() || !family.contains("name")) throw Error("must be an object with a 'name'");
      where = "family '" + family.at("name").get<std::string>() + "'";
      space.families.push_back(read_family(family));
    }
    for (const Json& config : json.value("extra", Json::array())) {
      where = "extra configuration " + std::to_string(space.extra.size() + 1);
      space.extra.push_back(read_extra(config));
    }
  } catch (const std::exception& error) {
    return Failure{"search space " + name + ", " + where + ": " + error.what()};
  }
  if (space.combinations() == 0) return Failure{"search space " + name + " lists no configuration"};
  if (space.combinations() > kMostCombinations)
    return Failure{"search space " + name + " has " + std::to_string(space.combinations()) + " combinations; the limit is " +
                   std::to_string(kMostCombinations) + ": list fewer values"};
  return space;
}

Result<SearchSpace> read_space(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Failure{"cannot read the search space '" + path + "': " + std::strerror(errno)};
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) return Failure{"cannot read the search space '" + path + "': it is empty or no file"};
  return parse_space(text.str(), "'" + path + "'");
}

std::vector<KernelConfig> valid_configs(const SearchSpace& space, const DeviceLimits& limits) {
  std::vector<KernelConfig> configs;
  std::unordered_set<std::string> seen;
  space.for_each([&](const KernelConfig& config) {
    if (why_invalid(config, limits) == nullptr && seen.insert(config_id(config)).second) configs.push_back(config);
  });
  return configs;
}

SearchSpace space_of(std::vector<KernelConfig> configs) { return {{}, std::move(configs)}; }

std::string hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

std::string hash_of(const std::vector<KernelConfig>& configs) {
  std::string text;
  for (const KernelConfig& config : configs) text += config_id(config) + "\n";
  return hash_of(text);
}

std::string kernel_source_hash() {
  std::string text;
  for (const EmbeddedSource& source : embedded_sources()) text += std::string(source.name) + "\n" + source.text;
  return hash_of(text);
}

}  // namespace gemm
