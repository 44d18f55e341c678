// The disk cache of compiled kernels: shared by every process of a user, safe against damage and against each other.
//
// One file per kernel, named by the SHA-256 of its key. An entry holds the whole key and a checksum, so that whatever is not
// exactly the kernel asked for (half a file, another architecture's, random bytes) is a miss: compiled again and replaced.
// Entries are written to a temporary file and renamed, so readers only ever see whole ones.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "kernels/nvrtc_compiler.h"
#include "kernels/result.h"

namespace gemm {

class CubinCache {
 public:
  using Compile = std::function<Result<Cubin>()>;
  using Warn = std::function<void(const std::string& message)>;

  // An empty folder: no disk cache, because of `why_no_folder`. It is created on the first store. `warn` is called once at
  // most, when the cache turns out to be unusable.
  CubinCache(std::filesystem::path folder, Warn warn, std::string why_no_folder = {});

  // The cubin of `key` from disk, else from `compile`. Threads that ask for one key at the same time share one compilation.
  // Failure: that of `compile`; it is not remembered. The cache itself never fails.
  Result<Cubin> get(const std::string& key, const Compile& compile);

  // Forgets an entry that turned out to be unusable, so that the next `get` compiles.
  void discard(const std::string& key);

  std::filesystem::path entry_path(const std::string& key) const;

 private:
  Result<Cubin> read_or_compile(const std::string& key, const Compile& compile);
  std::optional<Cubin> read(const std::string& key) const;
  void store(const std::string& key, const Cubin& cubin);
  void warn_once(const std::string& why);

  std::filesystem::path folder_;
  Warn warn_;
  std::string why_no_folder_;
  std::atomic<bool> warned_{false};
  std::once_flag cleaned_;
  std::mutex mutex_;
  std::map<std::string, std::shared_future<Result<Cubin>>> in_flight_;
};

// Where cubins are kept: $GEMM_CACHE_DIR, else $XDG_CACHE_HOME/gemm, else $HOME/.cache/gemm. Failure: none of them is
// usable.
Result<std::filesystem::path> cubin_cache_folder();

// The cache in that folder, one for the process; it warns on stderr.
CubinCache& shared_cubin_cache();

}  // namespace gemm
