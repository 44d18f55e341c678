#include "kernels/cuda_tensor_map.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace gemm {
namespace {

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) && alignof(TensorMap) == alignof(CUtensorMap));

constexpr unsigned kSinceCuda = 12000;  // both functions

template <class Function>
Function* driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &function, kSinceCuda, cudaEnableDefault, &found);
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<Function*>(function) : nullptr;
}

struct Driver {
  decltype(cuTensorMapEncodeTiled)* encode = driver_function<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  decltype(cuTensorMapReplaceAddress)* move =
      driver_function<decltype(cuTensorMapReplaceAddress)>("cuTensorMapReplaceAddress");
};

const Driver& driver() {
  static const Driver found;
  return found;
}

CUtensorMapSwizzle swizzle_of(int bytes) {
  if (bytes == 128) return CU_TENSOR_MAP_SWIZZLE_128B;
  return bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_NONE;
}

// The driver checks the strides of extents of 1 too, where any will do; the smallest legal one serves.
cuuint64_t stride_bytes(int64_t extent, int64_t stride) { return extent > 1 ? static_cast<cuuint64_t>(stride) * 4 : 16; }

}  // namespace

Result<TensorMap> encode_cuda_map(const TensorMapSpec& s) {
  if (driver().encode == nullptr) return Failure{"this driver has no tensor maps (CUDA 12 or newer has)"};
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(s.length), static_cast<cuuint64_t>(s.lines),
                                static_cast<cuuint64_t>(s.batch)};
  const cuuint64_t strides[] = {stride_bytes(s.lines, s.ld), stride_bytes(s.batch, s.stride)};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(s.box_length), static_cast<cuuint32_t>(s.box_lines), 1};
  const cuuint32_t steps[] = {1, 1, 1};
  TensorMap map{};
  const CUresult result =
      driver().encode(reinterpret_cast<CUtensorMap*>(&map), CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, const_cast<float*>(s.data),
                      extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(s.swizzle_bytes),
                      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return map;
  return Failure{"the driver refuses a tensor map of " + std::to_string(s.batch) + " x " + std::to_string(s.lines) + " x " +
                 std::to_string(s.length) + " floats, ld " + std::to_string(s.ld) + ", stride " + std::to_string(s.stride) +
                 " (CUDA driver error " + std::to_string(result) + ")"};
}

void move_cuda_map(TensorMap& map, const float* data) {
  const CUresult result = driver().move(reinterpret_cast<CUtensorMap*>(&map), const_cast<float*>(data));
  if (result != CUDA_SUCCESS)
    throw Error("the driver refuses address " + std::to_string(reinterpret_cast<uintptr_t>(data)) +
                " for a tensor map (CUDA driver error " + std::to_string(result) + ")");
}

}  // namespace gemm
