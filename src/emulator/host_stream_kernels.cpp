#include "emulator/host_stream_kernels.h"

#include <utility>

#define GEMM_EMULATE
#include "emulator/emulated_stream_configs.h"
#include "kernels/device/stream.cuh"
#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

template <KernelVariant V>
void run_stream(const void* args) {
  stream<V>(*static_cast<const TileArgs*>(args));
}

template <int Index, Op OpA, Op OpB, int WidthA>
void register_widths(HostKernelMap& map) {
  const auto add = [&]<int WidthB>() {
    constexpr KernelVariant kVariant{kEmulatedStreamConfigs[Index], OpA, OpB, WidthA, WidthB, false};
    map[variant_spec(kVariant).function] = &run_stream<kVariant>;
  };
  add.template operator()<4>();
  add.template operator()<1>();
}

template <int Index, Op OpA, Op OpB, int Width>
void register_indirect(HostKernelMap& map) {
  constexpr KernelVariant kVariant{kEmulatedStreamConfigs[Index], OpA, OpB, Width, Width, false, false, true};
  map[variant_spec(kVariant).function] = &run_stream<kVariant>;
}

template <int Index, Op OpA, Op OpB>
void register_op_pair(HostKernelMap& map) {
  if constexpr (Index == kEmulatedIndirectStream) {
    register_indirect<Index, OpA, OpB, 4>(map);
    register_indirect<Index, OpA, OpB, 1>(map);
  }
  register_widths<Index, OpA, OpB, 4>(map);
  register_widths<Index, OpA, OpB, 1>(map);
}

template <int Index, Op OpA, int Width>
void register_epilogue(HostKernelMap& map) {
  constexpr KernelVariant kVariant{
      kEmulatedStreamConfigs[Index], OpA, Op::N, Width, Width, false, false, false, Epilogue::bias_relu};
  map[variant_spec(kVariant).function] = &run_stream<kVariant>;
}

template <int Index>
void register_epilogues(HostKernelMap& map) {
  if constexpr (emulated_stream_with_epilogue(Index)) {
    register_epilogue<Index, Op::N, 4>(map);
    register_epilogue<Index, Op::N, 1>(map);
    register_epilogue<Index, Op::T, 4>(map);
    register_epilogue<Index, Op::T, 1>(map);
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

void register_stream_kernels(HostKernelMap& map) {
  register_all(map, std::make_integer_sequence<int, kEmulatedStreamConfigCount>());
}

}  // namespace gemm
