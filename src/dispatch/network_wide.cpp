// Compiled for CPUs with AVX2; learned_model.cpp calls these on no other.
#include "dispatch/network_layers.h"

namespace gemm {

NetworkFunctions wide_network_functions() { return network_functions<8>(); }

}  // namespace gemm
