// Reads a table from JSON. The text as a whole must be JSON and name its device; below that, each kernel and each point
// stands alone: one that cannot be used is left out with a warning, and the rest is used. learned_model_parse.cpp reads what
// calibration fitted.
#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "dispatch/json_fields.h"
#include "dispatch/json_text.h"
#include "dispatch/learned_model_parse.h"
#include "dispatch/table.h"
#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

using namespace json_fields;
using nlohmann::json;

// Tells of what is wrong with the entry at hand.
using Tell = std::function<void(const std::string&)>;

constexpr int64_t kMaxLength = std::numeric_limits<int>::max();  // of m, n, k and batch in a table
constexpr int kMaxSplit = 65535;                                 // grid.y
constexpr int kMostRegisters = 255;                              // of a thread

DeviceInfo read_device(const json& object, bool emulated) {
  DeviceInfo device;
  device.name = text_of(object, "name");
  device.emulated = emulated;
  device.sm_count = small_integer(object, "sm_count");
  device.memory_bytes = integer(object, "memory_bytes", 1, std::numeric_limits<int64_t>::max());
  device.l2_bytes = integer(object, "l2_bytes", 0, std::numeric_limits<int64_t>::max());
  device.sm_clock_mhz = small_integer(object, "sm_clock_mhz", 0);
  device.limits.compute_capability = small_integer(object, "compute_capability", 10, 9999);
  const json& limits = field(object, "limits");
  device.limits.shared_bytes_per_block = small_integer(limits, "shared_bytes_per_block");
  device.limits.shared_bytes_per_sm = small_integer(limits, "shared_bytes_per_sm");
  device.limits.registers_per_sm = small_integer(limits, "registers_per_sm");
  device.limits.threads_per_sm = small_integer(limits, "threads_per_sm");
  return device;
}

std::map<std::string, std::string> read_words(const json& root, const char* name) {
  std::map<std::string, std::string> words;
  const json& object = field(root, name);
  if (!object.is_object()) wrong(name, object, "an object of strings");
  for (const auto& item : object.items()) {
    if (!item.value().is_string()) wrong(item.key(), item.value(), "a string");
    words[item.key()] = item.value().get<std::string>();
  }
  return words;
}

// What the kernel is predicted by. It runs as well without, so damage here costs neither the kernel nor its points.
void read_prediction(const json& entry, const Table& table, PortfolioKernel& kernel, const Tell& tell) {
  try {
    if (entry.contains("model_factor")) kernel.model_factor = number(entry, "model_factor", false);
    if (entry.contains("traits")) kernel.traits = read_traits(entry["traits"], table.learned_model);
  } catch (const Error& error) {
    kernel.model_factor.reset();
    tell(std::string(" is not predicted for problems that were not tuned: ") + error.what());
  }
}

PortfolioKernel read_kernel(const json& entry, const Table& table, const Tell& tell) {
  PortfolioKernel kernel;
  kernel.id = text_of(entry, "id");
  KernelConfig& c = kernel.config;
  c.family = word<Family>(entry, "family", "\"tile\", \"stream\" or \"batch\"");
  c.BM = small_integer(entry, "BM");
  c.BN = small_integer(entry, "BN");
  c.BK = small_integer(entry, "BK");
  c.WM = small_integer(entry, "WM");
  c.WN = small_integer(entry, "WN");
  c.WNITER = small_integer(entry, "WNITER");
  c.TM = small_integer(entry, "TM");
  c.TN = small_integer(entry, "TN");
  c.stages = small_integer(entry, "stages");
  c.slices = small_integer(entry, "slices");
  c.min_blocks = small_integer(entry, "min_blocks");
  c.load = word<LoadPath>(entry, "load", "a load path");
  c.order = word<FmaOrder>(entry, "order", "an FMA order");
  c.acc_init = word<AccInit>(entry, "acc_init", "an accumulator initialisation");
  if (const char* why = why_invalid(c, table.device.limits)) throw Error("kernel '" + kernel.id + "' cannot run: " + why);
  if (kernel.id != config_id(c))
    throw Error("its parameters are those of '" + config_id(c) + "', not of '" + kernel.id + "'");
  kernel.registers = small_integer(entry, "registers", 0, kMostRegisters);
  kernel.spill_bytes = small_integer(entry, "spill_bytes", 0);
  kernel.shared_bytes = small_integer(entry, "shared_bytes", 0, table.device.limits.shared_bytes_per_block);
  kernel.threads = small_integer(entry, "threads", c.threads(), c.threads());
  read_prediction(entry, table, kernel, tell);
  return kernel;
}

Problem read_problem(const json& object) {
  const std::string ops = text_of(object, "ops");
  Op op_a{}, op_b{};
  if (ops.size() != 2 || !op_from_char(ops[0], op_a) || !op_from_char(ops[1], op_b))
    wrong("ops", field(object, "ops"), "two letters of N and T");
  const int64_t m = integer(object, "m", 1, kMaxLength);
  const int64_t n = integer(object, "n", 1, kMaxLength);
  const int64_t k = integer(object, "k", 1, kMaxLength);
  return packed_problem(m, n, k, op_a, op_b, integer(object, "batch", 1, kMaxLength));
}

TimeStats read_time(const json& object) {
  return {number(object, "median", false), number(object, "p20", false), number(object, "p80", false),
          small_integer(object, "n")};
}

std::optional<double> optional_time(const json& entry, const char* name) {
  if (!entry.contains(name)) return std::nullopt;
  return number(entry, name, false);
}

void read_own_kernel(const json& entry, const Table& table, TablePoint& point) {
  point.kernel = text_of(entry, "kernel");
  if (!table.find_kernel(point.kernel)) throw Error("kernel '" + point.kernel + "' is not in the portfolio");
  point.split_k = small_integer(entry, "split_k", 1, kMaxSplit);
  point.reduction = word<Reduction>(entry, "reduction", "\"ticket\", \"kernel\", \"stream_k\" or \"cluster\"");
  if (entry.contains("relayout")) point.relayout = word<Relayout>(entry, "relayout", "\"none\", \"a\", \"b\" or \"ab\"");
  point.time_us = read_time(field(entry, "time_us"));
  point.tflops = number(entry, "tflops", true);
  point.max_scaled_error = number(entry, "max_scaled_error", true);
}

TablePoint read_point(const json& entry, const Table& table) {
  TablePoint point;
  point.problem = read_problem(field(entry, "problem"));
  const std::string use = text_of(entry, "use");
  if (use != "kernel" && use != "cublas") wrong("use", field(entry, "use"), "\"kernel\" or \"cublas\"");
  point.use_cublas = use == "cublas";
  if (!point.use_cublas || entry.contains("kernel")) read_own_kernel(entry, table, point);
  point.cublas_us = optional_time(entry, "cublas_us");
  point.cublaslt_best_us = optional_time(entry, "cublaslt_best_us");
  const json& ties = field(entry, "ties");
  if (!ties.is_array()) wrong("ties", ties, "an array of strings");
  for (const json& tie : ties) {
    if (!tie.is_string()) wrong("ties", ties, "an array of strings");
    point.ties.push_back(tie.get<std::string>());
  }
  return point;
}

CertificateGroup read_group(const json& object) {
  CertificateGroup group;
  group.problems = small_integer(object, "problems");
  group.of_best = number(object, "of_best", false);
  group.of_best_p5 = number(object, "of_best_p5", false);
  group.worst = number(object, "worst", false);
  group.worst_problem = read_problem(field(object, "worst_problem"));
  group.over_cublas = optional_time(object, "over_cublas");
  group.of_best_or_cublas = optional_time(object, "of_best_or_cublas");
  group.cublas_chosen = small_integer(object, "cublas_chosen", 0);
  return group;
}

Certificate read_certificate(const json& object) {
  Certificate certificate;
  if (object.contains("box")) certificate.box = read_group(object["box"]);
  if (object.contains("outside")) certificate.outside = read_group(object["outside"]);
  return certificate;
}

// What an entry is called in a warning: its id or problem where it has one.
std::string entry_name(const char* array, size_t index, const json& entry) {
  std::string name = std::string(array) + "[" + std::to_string(index) + "]";
  if (entry.is_object())
    for (const char* key : {"id", "problem"})
      if (entry.contains(key)) name += " " + shown(entry[key]);
  return name;
}

std::string key_of(const PortfolioKernel& kernel) { return "kernel '" + kernel.id + "'"; }
std::string key_of(const TablePoint& point) { return "problem " + to_string(point.problem); }

template <class Entry, class Read>
void read_entries(const json& root, const char* name, const Read& read, std::vector<Entry>& entries,
                  std::vector<std::string>* warnings) {
  const json& array = field(root, name);
  if (!array.is_array()) wrong(name, array, "an array");
  std::unordered_set<std::string> seen;
  for (size_t i = 0; i < array.size(); ++i) {
    const Tell tell = [&](const std::string& what) {
      if (warnings) warnings->push_back(entry_name(name, i, array[i]) + what);
    };
    try {
      Entry entry = read(array[i], tell);
      if (!seen.insert(key_of(entry)).second) throw Error(key_of(entry) + " is listed twice");
      entries.push_back(std::move(entry));
    } catch (const Error& error) {
      tell(std::string(" is left out: ") + error.what());
    }
  }
}

std::vector<double> read_curve(const json& array) {
  if (!array.is_array()) wrong("portfolio_curve", array, "an array of numbers");
  std::vector<double> curve;
  for (size_t i = 0; i < array.size(); ++i) curve.push_back(element(array, i, "portfolio_curve", 0, 1));
  return curve;
}

// What only calibrated tables have; each part stands alone.
void read_calibrated(const json& root, Table& table, std::vector<std::string>* warnings) {
  const auto read = [&](const char* name, auto reader) {
    if (root.contains(name)) try {
        reader(root[name]);
      } catch (const Error& error) {
        if (warnings) warnings->push_back(std::string("\"") + name + "\" is left out: " + error.what());
      }
  };
  read("calibration", [](const json&) { throw Error("it is of an older form; gemm-tune calibrates such a table again"); });
  read("learned_model", [&](const json& value) { table.learned_model = read_learned_model(value); });
  read("certificate", [&](const json& value) { table.certificate = read_certificate(value); });
  read("portfolio_curve", [&](const json& value) { table.portfolio_curve = read_curve(value); });
}

// Such kernels are not predicted, which nobody would notice. Where the networks were left out, that has been said.
void check_traits(const json& root, const Table& table, std::vector<std::string>* warnings) {
  if (!warnings || (root.contains("learned_model") && !table.learned_model)) return;
  const size_t networks = table.learned_model ? table.learned_model->networks.size() : 0;
  const auto others = std::count_if(table.portfolio.begin(), table.portfolio.end(), [&](const PortfolioKernel& kernel) {
    return !kernel.traits.empty() && kernel.traits.size() != networks;
  });
  if (others > 0)
    warnings->push_back("the traits of " + std::to_string(others) + " kernels are not for the table's " +
                        std::to_string(networks) + " networks, so these kernels are not predicted");
}

Table read_table(const json& root, std::vector<std::string>* warnings) {
  Table table;
  table.version = small_integer(root, "version");
  if (table.version != kTableVersion)
    throw Error("it has format version " + std::to_string(table.version) + ", this library reads version " +
                std::to_string(kTableVersion) + "; tune again or use the library that wrote it");
  table.provenance = text_of(root, "provenance");
  if (table.provenance != "measured" && table.provenance != "modelled")
    wrong("provenance", field(root, "provenance"), "\"measured\" or \"modelled\"");
  table.device = read_device(field(root, "device"), table.provenance == "modelled");
  table.environment = read_words(root, "environment");
  table.method = read_words(root, "method");
  const auto kernel = [&](const json& entry, const Tell& tell) { return read_kernel(entry, table, tell); };
  const auto point = [&](const json& entry, const Tell&) { return read_point(entry, table); };
  read_calibrated(root, table, warnings);  // before the kernels, whose traits are for its networks
  read_entries(root, "portfolio", kernel, table.portfolio, warnings);
  read_entries(root, "points", point, table.points, warnings);
  check_traits(root, table, warnings);
  return table;
}

}  // namespace

Result<Table> parse_table(const std::string& text, std::vector<std::string>* warnings) {
  if (text.empty()) return Failure{"the file is empty"};
  if (text.compare(0, 3, "\xEF\xBB\xBF") == 0)
    return Failure{"line 1, column 1: the file starts with a byte order mark; save it as plain UTF-8"};
  const Result<json> root = parse_json(quote_nonfinite(text));
  if (!root) return Failure{root.error()};
  try {
    return read_table(*root, warnings);
  } catch (const json::exception& error) {
    return Failure{without_json_tag(error.what())};
  } catch (const Error& error) {
    return Failure{error.what()};
  }
}

}  // namespace gemm
