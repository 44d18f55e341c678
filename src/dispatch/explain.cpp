#include "dispatch/explain.h"

#include <cstdio>

#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

std::string line(const char* label, const std::string& text) {
  char padded[32];
  std::snprintf(padded, sizeof padded, "%-11s", label);
  return padded + text + "\n";
}

std::string microseconds(double us) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g us", us);
  return text;
}

std::string rule_text(const Candidate& candidate) {
  std::string text = to_string(candidate.rule);
  if (candidate.rule == Rule::nearest) {
    char number[48];
    std::snprintf(number, sizeof number, ", %.2f octaves from ", candidate.distance);
    text += number + to_string(candidate.point->problem);
  }
  return text;
}

std::string split_text(const Problem& problem, const Choice& choice) {
  const int split = effective_split(choice.config, problem, choice.split_k);
  if (choice.reduction == Reduction::stream_k) return "1, the last tiles by stream_k";
  if (split == 1) return "1";
  return std::to_string(split) + ", reduced by " + to_string(choice.reduction);
}

std::string relayout_text(const Problem& problem, Relayout relayout) {
  const RelaidProduct product = relaid_product(relayout, problem);
  return std::string(to_string(relayout)) + ": copied first, " + std::to_string(product.copy_bytes() >> 10) +
         " KiB of workspace, in " + std::to_string(product.panels) + (product.panels == 1 ? " panel" : " panels");
}

// What the table says about the point's time; a nearest point's is for that point, so it says so.
std::string expected_text(const Candidate& candidate) {
  const TablePoint& point = *candidate.point;
  std::string text;
  const auto add = [&](const char* what, double us) {
    text += (text.empty() ? "" : ", ") + std::string(what) + microseconds(us);
  };
  if (candidate.use_cublas && point.cublas_us) add("", *point.cublas_us);
  if (!point.kernel.empty()) add(candidate.use_cublas ? "own kernel " : "", point.time_us.median);
  if (!candidate.use_cublas && point.cublas_us) add("cuBLAS ", *point.cublas_us);
  if (point.cublaslt_best_us) add("best cuBLASLt ", *point.cublaslt_best_us);
  if (text.empty()) return "unknown";
  return text + (candidate.rule == Rule::nearest ? " (at that point)" : "");
}

}  // namespace

std::string explain(const Problem& problem, const Candidate& candidate, const std::string& table_source,
                    const std::vector<std::string>& others) {
  std::string text = line("problem", to_string(problem)) + line("rule", rule_text(candidate));
  if (candidate.use_cublas) {
    text += line("kernel", "cuBLAS");
  } else {
    text += line("kernel", config_id(candidate.choice.config));
    text += line("split_k", split_text(problem, candidate.choice));
    if (candidate.choice.relayout != Relayout::none)
      text += line("relayout", relayout_text(problem, candidate.choice.relayout));
  }
  if (candidate.point) text += line("expected", expected_text(candidate));
  if (candidate.rule == Rule::predicted)
    text += line("expected", microseconds(candidate.predicted_us) + " by the calibrated cost model");
  text += line("table", table_source);
  for (const std::string& other : others) text += line(&other == &others.front() ? "considered" : "", other);
  return text;
}

std::string explain(const Problem& problem, const Decision& decision, const std::string& table_source) {
  std::vector<std::string> others = decision.rejected;
  for (size_t i = 1; i < decision.candidates.size(); ++i) others.push_back(to_string(decision.candidates[i]));
  return explain(problem, decision.candidates.front(), table_source, others);
}

std::string describe_source(const Table& table, const std::string& path, const DeviceInfo& device) {
  std::string text = path + " (" + table.provenance + " on " + table.device.name + "; ";
  switch (match(table, device)) {
    case TableMatch::exact: return text + "exact)";
    case TableMatch::borrowed: return text + "borrowed for " + device.name + ")";
    case TableMatch::unusable: return text + "unusable on " + device.name + ")";
  }
  return text;
}

}  // namespace gemm
