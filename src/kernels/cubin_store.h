// Kernels that were compiled beforehand, for GPUs of one compute capability: what a bundle brings (dispatch/bundle.h).
// Read-only once it is handed to a device, so threads need no lock.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/nvrtc_compiler.h"

namespace gemm {

class CubinStore {
 public:
  // What kernels are found by: a digest of the kernel's own source (source_of), not of the sources that it includes. Those
  // have to be this library's, which kernel_sources_digest() tells.
  static std::string key_of(const KernelSpec& spec);

  // `content` holds the images; all kernels were compiled for `arch` ("sm_90a").
  CubinStore(std::string content, std::string arch) : content_(std::move(content)), arch_(std::move(arch)) {}

  // The image at [offset, offset + bytes) of the content. Throws Error where that is not inside, or where the key is there.
  void add(const std::string& key, size_t offset, size_t bytes);

  // The kernel ready to load, or nothing.
  std::optional<Cubin> find(const KernelSpec& spec) const;

  size_t size() const { return places_.size(); }
  const std::string& arch() const { return arch_; }

 private:
  struct Place {
    size_t offset, bytes;
  };
  std::string content_, arch_;
  std::map<std::string, Place, std::less<>> places_;
};

}  // namespace gemm
