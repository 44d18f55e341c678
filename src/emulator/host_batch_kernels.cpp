#include "emulator/host_batch_kernels.h"

#include <utility>

#include "emulator/emulated_batch_configs.h"
#include "emulator/emulated_device.h"
#define GEMM_EMULATE
#include "kernels/device/batch.cuh"
#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

template <KernelVariant V>
void run_batch(const void* args) {
  batch<V>(*static_cast<const TileArgs*>(args));
}

template <KernelVariant V>
void register_variant(HostKernelMap& map) {
  map[variant_spec(V).function] = &run_batch<V>;
}

template <int Index, Op OpA, Op OpB>
void register_op_pair(HostKernelMap& map) {
  const auto with_width_a = [&]<int WidthA>() {
    register_variant<KernelVariant{kEmulatedBatchConfigs[Index], OpA, OpB, WidthA, 4}>(map);
    register_variant<KernelVariant{kEmulatedBatchConfigs[Index], OpA, OpB, WidthA, 1}>(map);
  };
  with_width_a.template operator()<4>();
  with_width_a.template operator()<1>();
  if constexpr (Index == kEmulatedIndirectBatch) {
    register_variant<KernelVariant{kEmulatedBatchConfigs[Index], OpA, OpB, 4, 4, false, false, true}>(map);
    register_variant<KernelVariant{kEmulatedBatchConfigs[Index], OpA, OpB, 1, 1, false, false, true}>(map);
  }
}

template <int Index>
void register_epilogues(HostKernelMap& map) {
  const auto with = [&]<Op OpA, int Width>() {
    register_variant<KernelVariant{kEmulatedBatchConfigs[Index], OpA, Op::N, Width, Width, false, false, false,
                                   Epilogue::bias_relu}>(map);
  };
  if constexpr (emulated_batch_with_epilogue(Index)) {
    with.template operator()<Op::N, 4>();
    with.template operator()<Op::N, 1>();
    with.template operator()<Op::T, 4>();
    with.template operator()<Op::T, 1>();
  }
}

template <int... Index>
void register_all(HostKernelMap& map, std::integer_sequence<int, Index...>) {
  (register_op_pair<Index, Op::N, Op::N>(map), ...);
  (register_op_pair<Index, Op::N, Op::T>(map), ...);
  (register_op_pair<Index, Op::T, Op::N>(map), ...);
  (register_op_pair<Index, Op::T, Op::T>(map), ...);
  (register_epilogues<Index>(map), ...);
}

}  // namespace

void register_batch_kernels(HostKernelMap& map) {
  register_all(map, std::make_integer_sequence<int, kEmulatedBatchConfigCount>());
}

const std::vector<KernelConfig>& emulated_batch_configs() {
  static const std::vector<KernelConfig> configs(std::begin(kEmulatedBatchConfigs), std::end(kEmulatedBatchConfigs));
  return configs;
}

}  // namespace gemm
