// The worker process: the only one that touches the device. It serves the coordinator's requests until the socket closes.
#pragma once

#include <functional>
#include <memory>

#include "kernels/device.h"
#include "tuner/problem_bench.h"

namespace gemm {

using DeviceFactory = std::function<Result<std::unique_ptr<Device>>()>;

// Serves the protocol on `fd`. Returns the exit status: 0 when the coordinator went away, 1 when the device could not be
// opened, 3 when the device failed under a candidate and this process must not use it any further.
int run_worker(int fd, const DeviceFactory& open_device, const TimeModel& time_model);

// Threads that compile on a machine with so many cores: all but the one that times.
int compile_threads(int cores);

}  // namespace gemm
