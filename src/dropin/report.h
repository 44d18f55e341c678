// Counts of what became of the calls, and the line at exit.
#pragma once

#include <cstdint>
#include <string>

#include "dropin/call.h"

namespace gemm::dropin {

// Thread-safe, all three.
void count(Entry entry, Verdict verdict);
uint64_t calls(Entry entry, Verdict verdict);

// One line: "gemm drop-in: 12 served, 3 forwarded; cublasSgemm_v2: 12 served, 0 forwarded; cublasGemmEx: 0 served, 3
// forwarded (3 algorithm)". Functions that were never called are left out; empty where none was.
std::string report_line();

}  // namespace gemm::dropin
