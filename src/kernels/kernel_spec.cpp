#include "kernels/kernel_spec.h"

#include <array>
#include <charconv>
#include <utility>

namespace gemm {
namespace {

template <class E, size_t N>
using Names = std::array<std::pair<E, const char*>, N>;

constexpr Names<LoadPath, 6> kLoadNames{{{LoadPath::async, "async"},
                                         {LoadPath::async_transpose, "async_transpose"},
                                         {LoadPath::register_staged, "register_staged"},
                                         {LoadPath::tma, "tma"},
                                         {LoadPath::warp_specialized, "warp_specialized"},
                                         {LoadPath::warp_specialized_k, "warp_specialized_k"}}};
constexpr Names<Family, 3> kFamilyNames{{{Family::tile, "tile"}, {Family::stream, "stream"}, {Family::batch, "batch"}}};
constexpr Names<FmaOrder, 2> kOrderNames{{{FmaOrder::rows, "rows"}, {FmaOrder::columns, "columns"}}};
constexpr Names<AccInit, 2> kInitNames{{{AccInit::plain, "plain"}, {AccInit::shifted, "shifted"}}};
constexpr Names<Epilogue, 4> kEpilogueNames{
    {{Epilogue::none, "none"}, {Epilogue::bias, "bias"}, {Epilogue::relu, "relu"}, {Epilogue::bias_relu, "bias_relu"}}};

template <class E, size_t N>
const char* name_of(const Names<E, N>& names, E value) {
  for (const auto& [candidate, name] : names)
    if (candidate == value) return name;
  return "?";
}

template <class E, size_t N>
bool value_of(const Names<E, N>& names, const std::string& text, E& value) {
  for (const auto& [candidate, name] : names)
    if (text == name) {
      value = candidate;
      return true;
    }
  return false;
}

// Reads `prefix` and a positive number at the front of `text` and removes them.
bool take(std::string_view& text, std::string_view prefix, int& number) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number <= 0) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// Reads the name of an enumerator at the front of `text` and removes it. The longest name that fits is taken, since "async"
// begins "async_transpose".
template <class E, size_t N>
bool take_name(std::string_view& text, const Names<E, N>& names, E& value) {
  size_t length = 0;
  for (const auto& [candidate, name] : names) {
    const std::string_view view(name);
    if (text.starts_with(view) && view.size() > length) {
      length = view.size();
      value = candidate;
    }
  }
  text.remove_prefix(length);
  return length > 0;
}

bool take_text(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

std::string enumerator(const char* type, const char* name) { return std::string("gemm::") + type + "::" + name; }

// The C++ expression of a variant as a template argument.
std::string expression(const KernelVariant& v) {
  const KernelConfig& c = v.config;
  std::string text = "gemm::KernelVariant{{";
  for (int number : {c.BM, c.BN, c.BK, c.WM, c.WN, c.WNITER, c.TM, c.TN, c.stages, c.slices, c.min_blocks})
    text += std::to_string(number) + ", ";
  text += enumerator("LoadPath", to_string(c.load)) + ", " + enumerator("FmaOrder", to_string(c.order)) + ", " +
          enumerator("AccInit", to_string(c.acc_init)) + ", " + enumerator("Family", to_string(c.family)) + "}, ";
  text += enumerator("Op", v.op_a == Op::N ? "N" : "T") + ", " + enumerator("Op", v.op_b == Op::N ? "N" : "T") + ", ";
  text += std::to_string(v.vec_a) + ", " + std::to_string(v.vec_b) + (v.long_ld ? ", true" : ", false") +
          (v.cluster ? ", true" : ", false");
  text += v.indirect ? ", true" : "";
  // Left out where there is none, so that other kernels keep their source, by which caches and bundles know them.
  if (v.epilogue != Epilogue::none)
    text += (v.indirect ? ", " : ", false, ") + enumerator("Epilogue", to_string(v.epilogue));
  return text + "}";
}

// The device function of a configuration, and the name of its header.
std::string function_of(const KernelConfig& c) {
  switch (c.family) {
    case Family::stream: return "stream";
    case Family::batch: return "batch";
    default: break;
  }
  switch (c.load) {
    case LoadPath::tma: return "tma_tile";
    case LoadPath::warp_specialized:
    case LoadPath::warp_specialized_k: return "specialized_tile";
    default: return "tile";
  }
}

KernelSpec plain_spec(const char* name, const char* header, const char* args_type) {
  return {name, header, std::string("gemm::") + name, std::string("gemm::") + args_type, 256, 1};
}

// A kernel that is a template on the epilogue.
KernelSpec spec_with(const char* name, const char* header, const char* args_type, Epilogue epilogue) {
  KernelSpec spec = plain_spec(name, header, args_type);
  spec.name += std::string("_") + to_string(epilogue);
  spec.function += "<" + enumerator("Epilogue", to_string(epilogue)) + ">";
  return spec;
}

}  // namespace

const char* to_string(Family family) { return name_of(kFamilyNames, family); }
const char* to_string(LoadPath load) { return name_of(kLoadNames, load); }
const char* to_string(FmaOrder order) { return name_of(kOrderNames, order); }
const char* to_string(AccInit init) { return name_of(kInitNames, init); }
const char* to_string(Epilogue epilogue) { return name_of(kEpilogueNames, epilogue); }
bool from_string(const std::string& text, Family& family) { return value_of(kFamilyNames, text, family); }
bool from_string(const std::string& text, LoadPath& load) { return value_of(kLoadNames, text, load); }
bool from_string(const std::string& text, FmaOrder& order) { return value_of(kOrderNames, text, order); }
bool from_string(const std::string& text, AccInit& init) { return value_of(kInitNames, text, init); }

std::string config_id(const KernelConfig& c) {
  const auto s = [](int x) { return std::to_string(x); };
  return std::string(to_string(c.family)) + "_" + s(c.BM) + "x" + s(c.BN) + "x" + s(c.BK) + "_w" + s(c.WM) + "x" + s(c.WN) +
         "_t" + s(c.TM) + "x" + s(c.TN) + "x" + s(c.WNITER) + "_s" + s(c.stages) + "_k" + s(c.slices) + "_b" +
         s(c.min_blocks) + "_" + to_string(c.load) + "_" + to_string(c.order) + "_" + to_string(c.acc_init);
}

std::optional<KernelConfig> config_from_id(const std::string& id) {
  std::string_view text(id);
  KernelConfig c;
  const bool read = take_name(text, kFamilyNames, c.family) && take(text, "_", c.BM) && take(text, "x", c.BN) &&
                    take(text, "x", c.BK) && take(text, "_w", c.WM) && take(text, "x", c.WN) && take(text, "_t", c.TM) &&
                    take(text, "x", c.TN) && take(text, "x", c.WNITER) && take(text, "_s", c.stages) &&
                    take(text, "_k", c.slices) && take(text, "_b", c.min_blocks) && take_text(text, "_") &&
                    take_name(text, kLoadNames, c.load) && take_text(text, "_") && take_name(text, kOrderNames, c.order) &&
                    take_text(text, "_") && take_name(text, kInitNames, c.acc_init);
  if (!read || !text.empty()) return std::nullopt;
  return c;
}

std::string source_of(const KernelSpec& spec) {
  return "#include \"kernels/device/" + spec.header + "\"\n\nextern \"C\" __global__ void __launch_bounds__(" +
         std::to_string(spec.threads) + ", " + std::to_string(spec.min_blocks) + ")\n" + kEntryName +
         "(const __grid_constant__ " + spec.args_type + " args) {\n  gemm::begin_after_predecessors();\n  " + spec.function +
         "(args);\n}\n";
}

KernelSpec variant_spec(const KernelVariant& v) {
  const KernelConfig& c = v.config;
  KernelSpec spec;
  spec.name = config_id(c) + "_" + (v.op_a == Op::N ? "n" : "t") + (v.op_b == Op::N ? "n" : "t") + "_v" +
              std::to_string(v.vec_a) + std::to_string(v.vec_b) + (v.long_ld ? "_long" : "") +
              (v.cluster ? "_cluster" : "") + (v.indirect ? "_indirect" : "");
  if (v.epilogue != Epilogue::none) spec.name += std::string("_") + to_string(v.epilogue);
  const std::string function = function_of(c);
  spec.header = function + ".cuh";
  spec.function = "gemm::" + function + "<" + expression(v) + ">";
  spec.args_type = has_barrier_ring(c.load) ? "gemm::TmaTileArgs" : "gemm::TileArgs";
  spec.threads = c.threads();
  spec.min_blocks = c.min_blocks;
  return spec;
}

KernelSpec reduce_spec() { return plain_spec("reduce_splits", "reduce.cuh", "ReduceArgs"); }
KernelSpec reduce_indirect_spec() { return plain_spec("reduce_splits_indirect", "reduce.cuh", "ReduceArgs"); }
KernelSpec reduce_with_spec(Epilogue e) { return spec_with("reduce_splits_with", "reduce.cuh", "ReduceArgs", e); }
KernelSpec relayout_spec() { return plain_spec("relayout", "relayout.cuh", "RelayoutArgs"); }
KernelSpec scale_spec() { return plain_spec("scale", "scale.cuh", "ScaleArgs"); }
KernelSpec scale_indirect_spec() { return plain_spec("scale_indirect", "scale.cuh", "ScaleArgs"); }
KernelSpec scale_with_spec(Epilogue e) { return spec_with("scale_with", "scale.cuh", "ScaleArgs", e); }
KernelSpec reference_spec() { return plain_spec("reference", "check.cuh", "ReferenceArgs"); }
KernelSpec compare_spec() { return plain_spec("compare", "check.cuh", "CompareArgs"); }
KernelSpec guard_spec() { return plain_spec("count_guard_violations", "check.cuh", "GuardArgs"); }
KernelSpec fill_spec() { return plain_spec("fill_random", "check.cuh", "FillArgs"); }

}  // namespace gemm
