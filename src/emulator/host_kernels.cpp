#include "emulator/host_kernels.h"

#include <unordered_map>
#include <utility>

#include "emulator/emulated_batch_configs.h"
#include "emulator/emulated_configs.h"
#include "emulator/emulated_device.h"
#include "emulator/emulated_stream_configs.h"
#include "emulator/host_batch_kernels.h"
#include "emulator/host_stream_kernels.h"
#include "emulator/host_tile_kernels.h"
#define GEMM_EMULATE
#include "kernels/device/check.cuh"
#include "kernels/device/ladder.cuh"
#include "kernels/device/peaks.cuh"
#include "kernels/device/reduce.cuh"
#include "kernels/device/relayout.cuh"
#include "kernels/device/scale.cuh"
#include "kernels/kernel_spec.h"
#include "kernels/peaks.h"

namespace gemm {
namespace {

template <auto Function, class Args>
void run(const void* args) {
  Function(*static_cast<const Args*>(args));
}

template <int... Index>
void register_all_tiles(HostKernelMap& map, std::integer_sequence<int, Index...>) {
  (register_tile_kernels<Index>(map), ...);
}

// What is launched beside a product with this epilogue.
template <Epilogue E>
void register_epilogue(HostKernelMap& map) {
  map[reduce_with_spec(E).function] = &run<&reduce_splits_with<E>, ReduceArgs>;
  map[scale_with_spec(E).function] = &run<&scale_with<E>, ScaleArgs>;
}

HostKernelMap all_kernels() {
  HostKernelMap map;
  map[reduce_spec().function] = &run<&reduce_splits, ReduceArgs>;
  map[reduce_indirect_spec().function] = &run<&reduce_splits_indirect, ReduceArgs>;
  map[relayout_spec().function] = &run<&relayout, RelayoutArgs>;
  map[scale_spec().function] = &run<&scale, ScaleArgs>;
  map[scale_indirect_spec().function] = &run<&scale_indirect, ScaleArgs>;
  register_epilogue<Epilogue::bias>(map);
  register_epilogue<Epilogue::relu>(map);
  register_epilogue<Epilogue::bias_relu>(map);
  map[reference_spec().function] = &run<&reference, ReferenceArgs>;
  map[compare_spec().function] = &run<&compare, CompareArgs>;
  map[guard_spec().function] = &run<&count_guard_violations, GuardArgs>;
  map[fill_spec().function] = &run<&fill_random, FillArgs>;
  map[ffma_peak_spec().function] = &run<&ffma_peak, FfmaPeakArgs>;
  map[copy_peak_spec().function] = &run<&copy_peak, CopyPeakArgs>;
  map["gemm::ladder_naive"] = &run<&ladder_naive, LadderArgs>;
  map["gemm::ladder_coalesced"] = &run<&ladder_coalesced, LadderArgs>;
  map["gemm::ladder_shared"] = &run<&ladder_shared, LadderArgs>;
  map["gemm::ladder_tile_1d"] = &run<&ladder_tile_1d, LadderArgs>;
  map["gemm::ladder_tile_2d"] = &run<&ladder_tile_2d, LadderArgs>;
  map["gemm::ladder_vectorised"] = &run<&ladder_vectorised, LadderArgs>;
  register_batch_kernels(map);
  register_stream_kernels(map);
  register_all_tiles(map, std::make_integer_sequence<int, kEmulatedConfigCount>());
  return map;
}

}  // namespace

std::vector<KernelConfig> emulated_indirect_configs() {
  std::vector<KernelConfig> configs;
  for (const KernelConfig& config : kEmulatedConfigs)
    if (emulated_indirectly(config)) configs.push_back(config);
  configs.push_back(kEmulatedStreamConfigs[kEmulatedIndirectStream]);
  configs.push_back(kEmulatedBatchConfigs[kEmulatedIndirectBatch]);
  return configs;
}

HostKernel find_host_kernel(const std::string& function) {
  static const HostKernelMap kernels = all_kernels();
  const auto found = kernels.find(function);
  return found == kernels.end() ? nullptr : found->second;
}

}  // namespace gemm
