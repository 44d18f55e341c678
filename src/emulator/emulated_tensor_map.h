// What an emulated device keeps in a TensorMap, and the copy that the tensor copy engine makes of it.
#pragma once

#include "kernels/device.h"

namespace gemm {

struct EmulatedTensorMap {
  const float* data;
  int64_t length, lines, batch;
  int64_t ld, stride;
  int box_length, box_lines;
  int swizzle_bytes;

  int box_floats() const { return box_length * box_lines; }
};

// Failure: what the CUDA driver would refuse too.
Result<TensorMap> encode_emulated_map(const TensorMapSpec& spec);
void move_emulated_map(TensorMap& map, const float* data);
EmulatedTensorMap emulated_tensor_map(const TensorMap& map);

// Copies the box from element (x, line, batch) on; zeros outside the tensor, 16-byte pieces swizzled.
void copy_tensor_box(const EmulatedTensorMap& map, float* to, int x, int line, int batch);

}  // namespace gemm
