#include "kernels/cubin_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>

#include "kernels/cubin_entry.h"
#include "kernels/file_io.h"
#include "kernels/sha256.h"

namespace gemm {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTemporaryMark = ".tmp-";
constexpr auto kTemporaryLifetime = std::chrono::hours(1);

// Far above any cubin; a larger file is not ours.
constexpr int64_t kMostEntryBytes = int64_t{64} << 20;

// Renames over whatever is at `to`, a folder included.
bool rename_over(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return true;
  if (errno != EISDIR && errno != ENOTEMPTY && errno != EEXIST) return false;
  std::error_code ignored;
  fs::remove_all(to, ignored);
  return ::rename(from.c_str(), to.c_str()) == 0;
}

// Writes beside `path` under a name that no other process or thread has, then renames. Not flushed to the disk: what a power
// failure leaves behind is found by the checksum. Returns the reason of a failure.
std::string write_atomically(const fs::path& path, const std::string& content) {
  std::string temporary = path.string() + kTemporaryMark + std::to_string(::getpid()) + "-XXXXXX";
  FileDescriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) return std::strerror(errno);
  if (write_all(file.get(), content) && file.close() && rename_over(temporary, path)) return {};
  std::string why = std::strerror(errno);
  ::unlink(temporary.c_str());
  return why;
}

// What processes left behind that were killed while they wrote.
void remove_old_temporaries(const fs::path& folder) {
  std::error_code error;
  const auto oldest = fs::file_time_type::clock::now() - kTemporaryLifetime;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().find(kTemporaryMark) == std::string::npos) continue;
    std::error_code gone;
    if (const auto written = entry->last_write_time(gone); !gone && written < oldest) fs::remove(entry->path(), gone);
  }
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

CubinCache::CubinCache(fs::path folder, Warn warn, std::string why_no_folder)
    : folder_(std::move(folder)), warn_(std::move(warn)), why_no_folder_(std::move(why_no_folder)) {}

Result<Cubin> CubinCache::get(const std::string& key, const Compile& compile) {
  std::promise<Result<Cubin>> promise;
  {
    std::unique_lock lock(mutex_);
    if (const auto found = in_flight_.find(key); found != in_flight_.end()) {
      const std::shared_future<Result<Cubin>> future = found->second;
      lock.unlock();
      return future.get();
    }
    in_flight_.emplace(key, promise.get_future().share());
  }
  const auto finish = [&] {
    const std::lock_guard lock(mutex_);
    in_flight_.erase(key);
  };
  try {
    Result<Cubin> result = read_or_compile(key, compile);
    promise.set_value(result);
    finish();
    return result;
  } catch (...) {
    promise.set_exception(std::current_exception());
    finish();
    throw;
  }
}

void CubinCache::discard(const std::string& key) {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(entry_path(key), ignored);
}

fs::path CubinCache::entry_path(const std::string& key) const {
  return folder_ / (sha256_hex(key).substr(0, 32) + ".cubin-entry");
}

Result<Cubin> CubinCache::read_or_compile(const std::string& key, const Compile& compile) {
  if (std::optional<Cubin> cubin = read(key)) return std::move(*cubin);
  Result<Cubin> compiled = compile();
  if (compiled) store(key, *compiled);
  return compiled;
}

std::optional<Cubin> CubinCache::read(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const Result<std::string> entry = read_regular_file(entry_path(key), kMostEntryBytes);
  return entry ? read_cubin_entry(*entry, key) : std::nullopt;
}

void CubinCache::store(const std::string& key, const Cubin& cubin) {
  if (folder_.empty()) return warn_once(why_no_folder_);
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return warn_once(folder_.string() + ": " + error.message());
  std::call_once(cleaned_, [this] { remove_old_temporaries(folder_); });
  const std::string why = write_atomically(entry_path(key), write_cubin_entry(key, cubin));
  if (!why.empty()) warn_once(folder_.string() + ": " + why);
}

void CubinCache::warn_once(const std::string& why) {
  if (warned_.exchange(true)) return;
  warn_("gemm: compiled kernels cannot be kept (" + why +
        "), so every process compiles its own; set GEMM_CACHE_DIR to a folder that can be written");
}

Result<fs::path> cubin_cache_folder() {
  if (const fs::path chosen = environment("GEMM_CACHE_DIR"); !chosen.empty()) {
    std::error_code error;
    const fs::path absolute = fs::absolute(chosen, error);
    return error ? chosen : absolute;
  }
  // The XDG rules say that a relative path there is to be ignored.
  if (const fs::path xdg = environment("XDG_CACHE_HOME"); xdg.is_absolute()) return xdg / "gemm";
  const fs::path home = environment("HOME");
  if (!home.is_absolute() || home == home.root_path())
    return Failure{"GEMM_CACHE_DIR and XDG_CACHE_HOME are not set, and HOME is '" + home.string() + "'"};
  return home / ".cache" / "gemm";
}

CubinCache& shared_cubin_cache() {
  static CubinCache* const cache = [] {
    const Result<fs::path> folder = cubin_cache_folder();
    const auto warn = [](const std::string& message) { std::fprintf(stderr, "%s\n", message.c_str()); };
    return folder ? new CubinCache(*folder, warn) : new CubinCache({}, warn, folder.error());
  }();
  return *cache;
}

}  // namespace gemm
