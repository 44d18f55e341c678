// Definition of register_tile_kernels, for the generated source files only.
#pragma once

#define GEMM_EMULATE
#include "emulator/host_tile_kernels.h"
#include "kernels/device/tile.cuh"
#include "kernels/kernel_spec.h"

namespace gemm {

template <KernelVariant V>
void run_tile(const void* args) {
  tile<V>(*static_cast<const TileArgs*>(args));
}

template <KernelVariant V>
void register_variant(HostKernelMap& map) {
  map[tile_spec(V).function] = &run_tile<V>;
}

// Width that variant_for() gives an operand: transposing cp.async copies are always single floats.
constexpr int variant_width(const KernelConfig& config, bool k_contiguous, int width) {
  return config.load == LoadPath::async_transpose && k_contiguous ? 1 : width;
}

template <int Index, Op OpA, Op OpB>
void register_op_pair(HostKernelMap& map) {
  constexpr KernelConfig kConfig = kEmulatedConfigs[Index];
  const auto with = [&]<int WidthA, int WidthB, bool Long>() {
    register_variant<KernelVariant{kConfig, OpA, OpB, variant_width(kConfig, OpA == Op::T, WidthA),
                                   variant_width(kConfig, OpB == Op::N, WidthB), Long}>(map);
  };
  const auto with_width_a = [&]<int WidthA>() {
    with.template operator()<WidthA, 4, false>();
    with.template operator()<WidthA, 2, false>();
    with.template operator()<WidthA, 1, false>();
  };
  with_width_a.template operator()<4>();
  with_width_a.template operator()<2>();
  with_width_a.template operator()<1>();
  with.template operator()<1, 1, true>();
}

template <int Index>
void register_tile_kernels(HostKernelMap& map) {
  register_op_pair<Index, Op::N, Op::N>(map);
  register_op_pair<Index, Op::N, Op::T>(map);
  register_op_pair<Index, Op::T, Op::N>(map);
  register_op_pair<Index, Op::T, Op::T>(map);
}

}  // namespace gemm
