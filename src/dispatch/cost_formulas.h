// The cost model's formula for each kind of kernel.
#pragma once

#include "dispatch/cost_direct.h"
#include "dispatch/cost_specialized.h"
#include "dispatch/cost_tile.h"

namespace gemm::cost {

// Kernels must be able to serve the problem this way.
template <class N>
Terms<N> terms_of(const Product<N>& product, const Split<N>& split, Reduction reduction) {
  switch (product.formula) {
    case Formula::stream: return stream_terms(product, split, reduction);
    case Formula::batch: return batch_terms(product);
    case Formula::specialized: return specialized_terms(product, split, reduction);
    case Formula::tile: break;
  }
  return tile_terms(product, split, reduction);
}

}  // namespace gemm::cost
