// Which GPU the calling thread's cuBLAS call would run on.
#pragma once

#include <optional>

#include "kernels/device.h"

namespace gemm::dropin {

// The ordinal of the GPU whose primary context is current and owns `stream`; nothing where no context is current, where the
// program made the context itself, or where the stream belongs to another one (another GPU, a green context). cuBLAS asks of
// its callers that the GPU of the handle is current, so this is the handle's GPU. Thread-safe; allowed during stream
// capture.
std::optional<int> caller_device(Stream stream);

}  // namespace gemm::dropin
