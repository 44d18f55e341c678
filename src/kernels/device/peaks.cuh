// Two kernels that measure what this GPU can do at most: multiply-adds per second, and bytes per second of a device copy.
#pragma once

#include "kernels/device/platform.cuh"

namespace gemm {

// Every thread runs kPeakChains independent chains of multiply-adds. The two constant operands stay in the register file's
// reuse cache, so nothing but the issue rate limits. The sum is stored so that the compiler keeps the work.
GEMM_DEVICE void ffma_peak(const FfmaPeakArgs& args) {
  // Different in every thread, so that they are registers and not constants.
  const float factor = args.factor + args.step * static_cast<float>(threadIdx.x);
  const float term = args.term + args.step * static_cast<float>(threadIdx.x);
  float chain[kPeakChains];
  GEMM_UNROLL
  for (int i = 0; i < kPeakChains; ++i) chain[i] = static_cast<float>(i);
  GEMM_NO_UNROLL
  for (int round = 0; round < args.rounds; ++round) {
    GEMM_UNROLL
    for (int repeat = 0; repeat < kPeakRepeats; ++repeat) {
      GEMM_UNROLL
      for (int i = 0; i < kPeakChains; ++i) chain[i] = fmaf(chain[i], factor, term);
    }
  }
  float sum = 0;
  GEMM_UNROLL
  for (int i = 0; i < kPeakChains; ++i) sum += chain[i];
  args.out[static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x] = sum;
}

// A block copies kCopyQuads * blockDim quads of four floats; each thread has kCopyQuads loads in flight.
//
//   quads of one block: | 0 1 2 ... blockDim-1 | the same again | ...    neighbouring threads, neighbouring quads
GEMM_DEVICE void copy_peak(const CopyPeakArgs& args) {
  const float4* from = reinterpret_cast<const float4*>(args.from);
  float4* to = reinterpret_cast<float4*>(args.to);
  const long long first = static_cast<long long>(blockIdx.x) * (kCopyQuads * blockDim.x) + threadIdx.x;
  float4 value[kCopyQuads] = {};
  GEMM_UNROLL
  for (int i = 0; i < kCopyQuads; ++i) {
    const long long quad = first + static_cast<long long>(i) * blockDim.x;
    if (quad < args.quads) value[i] = from[quad];
  }
  GEMM_UNROLL
  for (int i = 0; i < kCopyQuads; ++i) {
    const long long quad = first + static_cast<long long>(i) * blockDim.x;
    if (quad < args.quads) to[quad] = value[i];
  }
}

}  // namespace gemm
