// From a KernelSpec to code for one GPU architecture, by NVRTC. NVRTC is opened on first need; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernel_spec.h"
#include "kernels/result.h"

namespace gemm {

// What the compiler is asked for: machine code for a real architecture, or PTX that the driver translates.
struct CompileTarget {
  std::string arch;  // "sm_90", or "compute_90" for PTX
  bool is_ptx = false;

  friend bool operator==(const CompileTarget&, const CompileTarget&) = default;
};

// Compiled code, ready to load.
struct Cubin {
  std::string image;  // ELF, or PTX text
  std::string log;    // compiler output: warnings, register spills
  CompileTarget target;
};

// The target for a GPU of this compute capability, given the ones that NVRTC knows: its own architecture, else PTX of the
// nearest older one.
Result<CompileTarget> choose_target(int compute_capability, const std::vector<int>& known);

// The same for the installed NVRTC.
Result<CompileTarget> target_for(int compute_capability);

// Failure: NVRTC is missing or incomplete, or the compiler's log.
Result<Cubin> compile_kernel(const KernelSpec& spec, int compute_capability);

// Everything that compile_kernel's result depends on, as text: what the cubin cache is asked with. Failure: no NVRTC.
Result<std::string> compile_key(const KernelSpec& spec, int compute_capability);

// A digest of the embedded sources: cubins of one library fit another where it is the same.
const std::string& kernel_sources_digest();

// "13.0", or "none" where NVRTC cannot be opened.
std::string nvrtc_version();

}  // namespace gemm
