// Which kernels dispatch may ask for with a table: what a bundle has to hold.
#pragma once

#include <string>
#include <vector>

#include "dispatch/table.h"
#include "kernels/kernel_spec.h"

namespace gemm {

// Dispatch may choose any kernel of the portfolio for any problem, and pointers and leading dimensions decide about the
// variant. All sets hold the built-in default kernels and the reproducible ones for every alignment, so that no problem is
// without a kernel, whatever the policy.
//   tuned    what the table's points run, with aligned matrices
//   aligned  and all kernels of the portfolio for matrices that are aligned to 16 bytes
//   all      and for all other alignments; only leading dimensions of millions are left to the default kernels
enum class BundleKernels { tuned, aligned, all };
bool from_string(const std::string& text, BundleKernels& which);

// Each kernel once, in a fixed order.
std::vector<KernelSpec> bundle_kernels(const Table& table, BundleKernels which);

}  // namespace gemm
