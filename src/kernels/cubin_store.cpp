#include "kernels/cubin_store.h"

#include "kernels/result.h"
#include "kernels/sha256.h"

namespace gemm {

std::string CubinStore::key_of(const KernelSpec& spec) { return sha256_hex(source_of(spec)); }

void CubinStore::add(const std::string& key, size_t offset, size_t bytes) {
  if (bytes == 0 || offset > content_.size() || bytes > content_.size() - offset)
    throw Error("kernel " + key + " lies outside of the file");
  if (!places_.emplace(key, Place{offset, bytes}).second) throw Error("kernel " + key + " is there twice");
}

std::optional<Cubin> CubinStore::find(const KernelSpec& spec) const {
  const auto found = places_.find(key_of(spec));
  if (found == places_.end()) return std::nullopt;
  return Cubin{content_.substr(found->second.offset, found->second.bytes), {}, {arch_, false}};
}

}  // namespace gemm
