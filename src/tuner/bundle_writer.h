// Writes a bundle: compiles a table's kernels, many at a time, and packs them with it. Needs NVRTC, but no GPU.
#pragma once

#include <string>

#include "dispatch/bundle.h"
#include "tuner/bundle_kernels.h"

namespace gemm {

struct BundleOptions {
  std::string table_path;
  std::string output_path;
  BundleKernels kernels = BundleKernels::aligned;
  int threads = 1;        // that compile
  bool dry_run = false;   // only say what would be compiled, and how long it would take
  bool terminal = false;  // progress as one line that renews itself
};

// Compiles for a compute capability with so many threads, and shows on stderr how far it is (`terminal` as above). Kernels
// go through the disk cache. Throws Error with the first failure; then no more are begun.
std::vector<BundledKernel> compile_kernels(const std::vector<KernelSpec>& specs, int compute_capability, int threads,
                                           bool terminal);

// Says on stderr what it does. An interrupted run goes on where it stopped, thanks to the disk cache; the bundle itself is
// written last and at once. Throws Error: no table, no NVRTC, a kernel that does not compile, or a file
// that cannot be written.
void write_bundle_file(const BundleOptions& options);

}  // namespace gemm
