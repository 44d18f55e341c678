// The emulated device: the kernel sources of src/kernels/device compiled for the host, one fibre (or, under ThreadSanitizer,
// one thread) per CUDA thread. It checks correctness anywhere; its times come from a stated model and are marked "modelled".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/launch.h"

namespace gemm {

// The order in which blocks of a grid run, so that tests can show that results do not depend on it.
enum class BlockOrder { forward, reverse, shuffled };

// A fault that a kernel shows, for testing the tuner: matched by a part of KernelSpec::name.
// hang_in_turns: when it is timed beside others.
enum class FaultKind { none, launch_refused, hang, hang_in_turns, crash, writes_nan, skips_last_tile };
struct Fault {
  std::string name_part;
  FaultKind kind = FaultKind::none;
};

struct EmulatorOptions {
  DeviceInfo info;  // what the device claims to be; emulated is set
  BlockOrder block_order = BlockOrder::forward;
  int late_warp = -1;  // of every block: its threads go on only when no other can; -1: none (GridRun)
  std::vector<Fault> faults;
};

// A GPU description for the model: an H200 with 132 SMs. Read from the environment: GEMM_EMULATOR_FAULTS, a comma-separated
// list of NAME_PART=launch_refused|hang|hang_in_turns|crash|writes_nan|skips_last_tile (for tests).
EmulatorOptions default_emulator_options();

std::unique_ptr<Device> make_emulated_device(EmulatorOptions options = default_emulator_options());

// The fixed set of configurations that are compiled for the host, every load path among them; docs/design.md lists them.
const std::vector<KernelConfig>& emulated_configs();
// The same of the batch family, which fits small matrices only.
const std::vector<KernelConfig>& emulated_batch_configs();

// One configuration of each family and load path that is compiled with pointers on the GPU (KernelVariant::indirect).
std::vector<KernelConfig> emulated_indirect_configs();

// The model behind every emulated time, in microseconds: max(FMA time with wave quantisation, memory time) + launch.
double modelled_time_us(const DeviceInfo& info, const Choice& choice, const Problem& problem);

}  // namespace gemm
