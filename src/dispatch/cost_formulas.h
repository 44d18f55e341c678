// The cost model's formula for each kind of kernel.
#pragma once

#include "dispatch/cost_direct.h"
#include "dispatch/cost_specialized.h"
#include "dispatch/cost_tile.h"

namespace gemm::cost {

// But for the reduction of a split k. Kernels must be able to serve the problem this way.
template <class N, class Mask>
Terms<N> terms_of(const Product<N>& product, const Split<N>& split, const Mask& in_clusters, bool stream_k) {
  switch (product.formula) {
    case Formula::stream: return stream_terms(product, split);
    case Formula::batch: return batch_terms(product);
    case Formula::specialized: return specialized_terms(product, split, stream_k ? Reduction::stream_k : Reduction::ticket);
    case Formula::tile: break;
  }
  return tile_terms(product, split, in_clusters);
}

}  // namespace gemm::cost
