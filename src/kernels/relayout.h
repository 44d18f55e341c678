// Products on copies of their operands. A copy has contiguous rows (as A has in NN and NT, B in NT and TT) and lines aligned
// to 128 bytes, so the tensor copy engine brings all of it and no kernel has to transpose; copying costs one pass over
// memory (device/relayout.cuh). What does not fit the space for copies is multiplied in panels, one after the other.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/kernel_args.h"
#include "kernels/problem.h"

namespace gemm {

// Which operands are copied before the product.
enum class Relayout : unsigned char { none, a, b, ab };
const char* to_string(Relayout relayout);
bool from_string(const std::string& text, Relayout& relayout);
constexpr bool copies_a(Relayout r) { return r == Relayout::a || r == Relayout::ab; }
constexpr bool copies_b(Relayout r) { return r == Relayout::b || r == Relayout::ab; }

// Space for copies, whatever the workspace: so the panels of a product, and its bits, depend on the problem alone. 4096 x
// 4096 x 4096 TN just takes two panels: all of A and half of B.
inline constexpr int64_t kMostCopyBytes = int64_t{96} << 20;

// What a problem becomes. Panels are parts of the larger copied operand, along m where that is A, else along n.
struct RelaidProduct {
  Problem panel, last;  // the products that run, on copies; the last one may be smaller
  bool along_m = false;
  int64_t panels = 1;
  int64_t copy_bytes_a = 0, copy_bytes_b = 0;  // of the workspace, A first; multiples of 256

  int64_t copy_bytes() const { return copy_bytes_a + copy_bytes_b; }
  int64_t first_row(int64_t panel_number) const { return along_m ? panel_number * panel.m : 0; }
  int64_t first_column(int64_t panel_number) const { return along_m ? 0 : panel_number * panel.n; }
};

// Why the operands of this problem cannot be copied, or nullptr. Its sizes fit 32 bits.
const char* why_not_relaid(Relayout relayout, const Problem& problem);
// Of a problem that can.
RelaidProduct relaid_product(Relayout relayout, const Problem& problem);
// The whole problem as if there were space for all copies at once.
Problem relaid_problem(Relayout relayout, const Problem& problem);

// Where a copy would change how A or B is read: it lies along k, or its lines are not aligned to 16 bytes.
bool gains_by_copy_a(const Problem& problem);
bool gains_by_copy_b(const Problem& problem);

// The copies that panel `number` needs: of the panelled operand its part, of another one all, with the first panel. Pointers
// of the operands are those of the whole problem.
RelayoutArgs copies_of_panel(Relayout relayout, const Problem& problem, const RelaidProduct& product, int64_t number,
                             const float* a, const float* b, float* workspace);

// Shared memory of the copying kernel.
inline constexpr int kRelayoutSharedBytes = kRelayoutTile * (kRelayoutTile + 1) * 4;

}  // namespace gemm
