// Serves products through libdispatch: one context for each GPU, opened on first use and kept until the process ends.
#pragma once

#include <array>
#include <functional>
#include <mutex>
#include <optional>

#include "dispatch/c_api.h"
#include "dropin/call.h"

namespace gemm::dropin {

// Thread-safe.
class Server {
 public:
  // The GPU that a call with this stream would run on, or nothing where we must not serve it.
  using Locate = std::function<std::optional<int>(Stream stream)>;
  // A context for that GPU, which the server keeps, or nullptr where there can be none. Its ContextOptions leave cuBLAS to
  // the caller: his own handle serves then, with its workspace and settings.
  using Open = std::function<gemm_context_t*(int device)>;

  Server(Locate locate, Open open) : locate_(std::move(locate)), open_(std::move(open)) {}

  // Enqueues the product on `stream`, if that is right. Unless the verdict is served or failed, C is untouched.
  Verdict serve(const Call& call, Stream stream) noexcept;

 private:
  static constexpr int kMaxDevices = 64;
  struct Gpu {
    std::once_flag opened;
    gemm_context_t* context = nullptr;
  };

  Gpu& gpu(int device);

  Locate locate_;
  Open open_;
  std::array<Gpu, kMaxDevices> gpus_;
};

// The process's server, on its GPUs. Never destroyed: the program may multiply until its very end, when the driver may be
// gone.
Server& server();

}  // namespace gemm::dropin
