// Definition of register_tile_kernels, for the generated source files only.
#pragma once

#define GEMM_EMULATE
#include "emulator/host_tile_kernels.h"
#include "kernels/device/specialized_tile.cuh"
#include "kernels/device/tile.cuh"
#include "kernels/device/tma_tile.cuh"
#include "kernels/kernel_spec.h"

namespace gemm {

template <KernelVariant V>
void run_tile(const void* args) {
  if constexpr (V.config.load == LoadPath::tma)
    tma_tile<V>(*static_cast<const TmaTileArgs*>(args));
  else if constexpr (is_specialized(V.config.load))
    specialized_tile<V>(*static_cast<const TmaTileArgs*>(args));
  else
    tile<V>(*static_cast<const TileArgs*>(args));
}

template <KernelVariant V>
void register_variant(HostKernelMap& map) {
  map[variant_spec(V).function] = &run_tile<V>;
  if constexpr (emulated_in_cluster(V.config) && !V.cluster && !V.indirect) {
    constexpr KernelVariant kCluster{V.config, V.op_a, V.op_b, V.vec_a, V.vec_b, V.long_ld, true, false, V.epilogue};
    register_variant<kCluster>(map);
  }
}

// Width that variant_for() gives an operand: copies that transpose are always of single floats, and the copying warpgroup
// knows no pairs.
constexpr int variant_width(const KernelConfig& config, bool k_contiguous, int width) {
  if (config.load == LoadPath::async_transpose && k_contiguous) return 1;
  if (is_specialized(config.load)) return width == 4 && (!k_contiguous || stays_along_k(config, width)) ? 4 : 1;
  return width;
}

template <KernelConfig Config, Op OpA, Op OpB, int Width>
void register_indirect(HostKernelMap& map) {
  register_variant<KernelVariant{Config, OpA, OpB, variant_width(Config, OpA == Op::T, Width),
                                 variant_width(Config, OpB == Op::N, Width), false, false, true}>(map);
}

template <KernelConfig Config, Op OpA, Op OpB, Epilogue E, bool Indirect = false>
void register_epilogue(HostKernelMap& map) {
  const auto with = [&]<int Width>() {
    register_variant<KernelVariant{Config, OpA, OpB, variant_width(Config, OpA == Op::T, Width),
                                   variant_width(Config, OpB == Op::N, Width), false, false, Indirect, E}>(map);
  };
  with.template operator()<4>();
  if constexpr (Config.load != LoadPath::tma) with.template operator()<1>();
}

template <KernelConfig Config, Op OpA, Op OpB>
void register_epilogues(HostKernelMap& map) {
  if constexpr (emulated_with_epilogue(Config)) register_epilogue<Config, OpA, OpB, Epilogue::bias_relu>(map);
  if constexpr (emulated_with_all_epilogues(Config)) {
    register_epilogue<Config, OpA, OpB, Epilogue::bias>(map);
    register_epilogue<Config, OpA, OpB, Epilogue::relu>(map);
  }
  if constexpr (emulated_indirectly_with_epilogue(Config))
    register_epilogue<Config, OpA, OpB, Epilogue::bias_relu, true>(map);
}

template <KernelConfig Config, Op OpA, Op OpB>
void register_op_pair(HostKernelMap& map) {
  const auto with = [&]<int WidthA, int WidthB, bool Long>() {
    register_variant<KernelVariant{Config, OpA, OpB, variant_width(Config, OpA == Op::T, WidthA),
                                   variant_width(Config, OpB == Op::N, WidthB), Long}>(map);
  };
  if constexpr (emulated_indirectly(Config)) {
    register_indirect<Config, OpA, OpB, 4>(map);
    if constexpr (Config.load != LoadPath::tma) register_indirect<Config, OpA, OpB, 1>(map);
  }
  const auto with_width_a = [&]<int WidthA>() {
    with.template operator()<WidthA, 4, false>();
    with.template operator()<WidthA, 2, false>();
    with.template operator()<WidthA, 1, false>();
  };
  if constexpr (Config.load == LoadPath::tma) {
    with.template operator()<4, 4, false>();
  } else {
    with_width_a.template operator()<4>();
    with_width_a.template operator()<2>();
    with_width_a.template operator()<1>();
    if constexpr (!is_specialized(Config.load)) with.template operator()<1, 1, true>();
  }
}

template <KernelConfig Config>
void register_config(HostKernelMap& map) {
  register_op_pair<Config, Op::N, Op::N>(map);
  register_op_pair<Config, Op::N, Op::T>(map);
  register_op_pair<Config, Op::T, Op::N>(map);
  register_op_pair<Config, Op::T, Op::T>(map);
  register_epilogues<Config, Op::N, Op::N>(map);
  register_epilogues<Config, Op::T, Op::N>(map);
  if constexpr (Config.load == LoadPath::tma) register_epilogues<Config, Op::N, Op::T>(map);  // on copies of operands
}

// What unaligned operands of LoadPath::tma take.
constexpr KernelConfig unaligned_twin(KernelConfig config) {
  config.load = LoadPath::async;
  return config;
}

template <int Index>
void register_tile_kernels([[maybe_unused]] HostKernelMap& map) {
  if constexpr (is_compiled(Index)) {
    constexpr KernelConfig kConfig = kEmulatedConfigs[Index];
    register_config<kConfig>(map);
    if constexpr (kConfig.load == LoadPath::tma) register_config<unaligned_twin(kConfig)>(map);
  }
}

}  // namespace gemm
