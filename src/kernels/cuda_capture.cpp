#include "kernels/cuda_capture.h"

#include "kernels/cuda_context.h"

namespace gemm {
namespace {

struct Capture {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  bool active() const { return status == cudaStreamCaptureStatusActive; }
};

// Of a stream that cannot be asked, because it is the legacy one and another is being captured, the launch will say so.
Capture capture_of(cudaStream_t stream) {
  Capture capture;
#if CUDART_VERSION >= 13000
  const cudaError_t error = cudaStreamGetCaptureInfo(stream, &capture.status, &capture.id, &capture.graph);
#else
  const cudaError_t error = cudaStreamGetCaptureInfo_v2(stream, &capture.status, &capture.id, &capture.graph);
#endif
  if (error == cudaSuccess) return capture;
  cudaGetLastError();
  return {};
}

void forget(void* thing) { delete static_cast<std::shared_ptr<void>*>(thing); }

}  // namespace

uint64_t cuda_capture_id(cudaStream_t stream) {
  const Capture capture = capture_of(stream);
  return capture.active() ? capture.id : 0;
}

Result<bool> keep_with_cuda_capture(cudaStream_t stream, std::shared_ptr<void> thing) {
  const Capture capture = capture_of(stream);
  if (!capture.active()) return Failure{"the stream is not being captured"};
  auto kept = std::make_unique<std::shared_ptr<void>>(std::move(thing));
  cudaUserObject_t object = nullptr;
  cudaError_t error = cudaUserObjectCreate(&object, kept.get(), forget, 1, cudaUserObjectNoDestructorSync);
  if (error == cudaSuccess) {
    kept.release();  // the object's now
    error = cudaGraphRetainUserObject(capture.graph, object, 1, cudaGraphUserObjectMove);
    if (error != cudaSuccess) cudaUserObjectRelease(object, 1);
  }
  if (error == cudaSuccess) return true;
  cudaGetLastError();
  return Failure{"the graph under capture takes no objects: " + describe(error)};
}

}  // namespace gemm
