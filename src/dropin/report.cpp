#include "dropin/report.h"

#include <atomic>
#include <cstdio>

#include "dropin/real_library.h"
#include "dropin/settings.h"

namespace gemm::dropin {
namespace {

std::atomic<uint64_t> counts[kEntryNames.size()][kVerdictNames.size()];

std::string amounts(uint64_t served, uint64_t others) {
  return std::to_string(served) + " served, " + std::to_string(others) + " forwarded";
}

// "cublasGemmEx: 0 served, 3 forwarded (2 algorithm, 1 layout)", or nothing where it was never called.
std::string entry_text(size_t entry, uint64_t& served, uint64_t& others) {
  std::string reasons;
  uint64_t entry_others = 0;
  for (size_t verdict = 1; verdict < kVerdictNames.size(); ++verdict) {
    const uint64_t n = calls(static_cast<Entry>(entry), static_cast<Verdict>(verdict));
    if (n == 0) continue;
    entry_others += n;
    reasons += (reasons.empty() ? " (" : ", ") + std::to_string(n) + " " + kVerdictNames[verdict];
  }
  if (!reasons.empty()) reasons += ")";
  const uint64_t entry_served = calls(static_cast<Entry>(entry), Verdict::served);
  if (entry_served + entry_others == 0) return {};
  served += entry_served;
  others += entry_others;
  return std::string("; ") + kEntryNames[entry] + ": " + amounts(entry_served, entry_others) + reasons;
}

// Runs when the process ends in the usual way. Processes without cuBLAS, such as the compilers and shells that a program
// starts, say nothing.
__attribute__((destructor)) void print_report() {
  if (!settings().report) return;
  std::string line = report_line();
  if (line.empty() && real_cublas().is_loaded())
    line = "gemm drop-in: cuBLAS was loaded, but none of its FP32 products was asked for in a way that the drop-in sees";
  if (!line.empty()) std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace

void count(Entry entry, Verdict verdict) {
  counts[static_cast<size_t>(entry)][static_cast<size_t>(verdict)].fetch_add(1, std::memory_order_relaxed);
}

uint64_t calls(Entry entry, Verdict verdict) {
  return counts[static_cast<size_t>(entry)][static_cast<size_t>(verdict)].load(std::memory_order_relaxed);
}

std::string report_line() {
  uint64_t served = 0, others = 0;
  std::string entries;
  for (size_t entry = 0; entry < kEntryNames.size(); ++entry) entries += entry_text(entry, served, others);
  return entries.empty() ? "" : "gemm drop-in: " + amounts(served, others) + entries;
}

}  // namespace gemm::dropin
