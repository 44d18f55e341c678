#include "tuner/bundle_kernels.h"

#include <limits>
#include <set>

#include "dispatch/reproducible.h"
#include "dispatch/selector.h"
#include "kernels/launch.h"

namespace gemm {
namespace {

// Divisible by every load width; where a kernel is meant for less, only its variant is asked for.
constexpr int64_t kLength = 1024;
// Beyond 32-bit offsets inside any tile.
constexpr int64_t kLongLd = int64_t{1} << 30;

// Collects the kernels of variants, each once.
class KernelSet {
 public:
  void add(const KernelSpec& spec) {
    if (names_.insert(spec.name).second) specs_.push_back(spec);
  }
  void add(const Choice& choice, const Problem& problem, const Operands& operands = {}) {
    add(variant_spec(variant_of(choice, problem, operands)));
  }

  // The variants for operands whose alignment is one of `widths`, in floats. The launcher maps several to one.
  void add_alignments(const Choice& choice, const std::vector<int>& widths, const Operands& operands = {}) {
    for (const Op op_a : {Op::N, Op::T})
      for (const Op op_b : {Op::N, Op::T})
        for (const int width_a : widths)
          for (const int width_b : widths) {
            Problem p = packed_problem(kLength, kLength, kLength, op_a, op_b);
            p.lda += width_a;
            p.ldb += width_b;
            add(choice, p, operands);
          }
  }

  std::vector<KernelSpec> take() { return std::move(specs_); }

 private:
  std::set<std::string> names_;
  std::vector<KernelSpec> specs_;
};

// For every layout.
void add_everywhere(KernelSet& set, const std::vector<KernelConfig>& configs) {
  for (const KernelConfig& config : configs) {
    const Choice choice{config, 1, Reduction::ticket};
    set.add_alignments(choice, {4, 2, 1});
    // Scalars on the GPU and arrays of pointers need kernels of their own; these are the ones for them.
    Operands indirect;
    indirect.indirect.scalars = true;
    set.add_alignments(choice, {4, 2, 1}, indirect);
    for (const Op op_a : {Op::N, Op::T})
      for (const Op op_b : {Op::N, Op::T}) {
        Problem p = packed_problem(kLength, kLength, kLength, op_a, op_b);
        p.lda = p.ldb = kLongLd;
        set.add(choice, p);
        set.add(choice, p, indirect);
      }
  }
}

void add_points(KernelSet& set, const Table& table) {
  for (const TablePoint& point : table.points)
    if (const PortfolioKernel* kernel = table.find_kernel(point.kernel))
      set.add(choice_of(point, kernel->config), point.problem);
}

void add_portfolio(KernelSet& set, const Table& table, const std::vector<int>& widths) {
  const Problem square = packed_problem(kLength, kLength, kLength);
  for (const PortfolioKernel& kernel : table.portfolio) {
    set.add_alignments({kernel.config, 1, Reduction::ticket}, widths);
    const Choice cluster{kernel.config, 2, Reduction::cluster};
    if (why_illegal(cluster, square, table.device, std::numeric_limits<int64_t>::max()).empty())
      set.add_alignments(cluster, widths);
  }
}

}  // namespace

bool from_string(const std::string& text, BundleKernels& which) {
  for (const auto& [name, value] : {std::pair{"tuned", BundleKernels::tuned}, std::pair{"aligned", BundleKernels::aligned},
                                    std::pair{"all", BundleKernels::all}})
    if (text == name) {
      which = value;
      return true;
    }
  return false;
}

std::vector<KernelSpec> bundle_kernels(const Table& table, BundleKernels which) {
  KernelSet set;
  // What products need beside their own kernel: copies of operands, a second launch that adds, and C = beta * C.
  set.add(relayout_spec());
  set.add(reduce_spec());
  set.add(scale_spec());
  set.add(reduce_indirect_spec());
  set.add(scale_indirect_spec());
  add_everywhere(set, default_configs());
  add_everywhere(set, reproducible_configs());
  add_points(set, table);
  if (which == BundleKernels::aligned) add_portfolio(set, table, {4});
  if (which == BundleKernels::all) add_portfolio(set, table, {4, 2, 1});
  return set.take();
}

}  // namespace gemm
