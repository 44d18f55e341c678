// What becomes of an element of C last, in kernels with an epilogue (kernel_types.h). All others compile as if this file
// were not there.
//
//   its sum over all of k, times alpha  ->  + beta * C  ->  + bias of its row  ->  ReLU  ->  C
//
// So it happens where an element is stored to C, and never to a part of its sum.
#pragma once

#include "kernels/device/platform.cuh"

namespace gemm {

// The bias of matrix `batch`, and its number for a row of C. Where the epilogue adds none, nobody looks at them.
template <Epilogue E>
GEMM_DEVICE const float* bias_of(const Bias& bias, long long batch) {
  if constexpr (has_bias(E))
    return bias.data + batch * bias.stride;
  else
    return nullptr;
}
template <Epilogue E>
GEMM_DEVICE float bias_at(const float* bias, int row) {
  if constexpr (has_bias(E))
    return bias[row];
  else
    return 0.0f;
}

// x as it is stored.
template <Epilogue E>
GEMM_DEVICE float finished(float x, float bias) {
  if constexpr (has_bias(E)) x += bias;
  if constexpr (has_relu(E)) x = x < 0.0f ? 0.0f : x;  // fmaxf would make 0 of NaN, and hide it
  return x;
}

// The same for four consecutive rows, all of them in C.
template <Epilogue E>
GEMM_DEVICE float4 finished(const float4& x, const float* bias, int row) {
  return make_float4(finished<E>(x.x, bias_at<E>(bias, row)), finished<E>(x.y, bias_at<E>(bias, row + 1)),
                     finished<E>(x.z, bias_at<E>(bias, row + 2)), finished<E>(x.w, bias_at<E>(bias, row + 3)));
}

}  // namespace gemm
