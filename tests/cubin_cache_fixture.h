// A cubin cache in a folder of its own, with a compiler that is a fake, so that its tests need no NVRTC.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cubin_cache.h"

namespace gemm::test {

namespace fs = std::filesystem;

// Removed at the end, whatever a test made of its permissions.
class CacheFolder {
 public:
  CacheFolder() {
    std::string name = (fs::temp_directory_path() / "gemm-cache-XXXXXX").string();
    if (!mkdtemp(name.data())) throw Error("no temporary folder");
    path_ = name;
  }
  ~CacheFolder() {
    std::error_code ignored;
    fs::permissions(path_, fs::perms::owner_all, ignored);
    fs::remove_all(path_, ignored);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline Cubin cubin_for(const std::string& key, size_t bytes = 1000) {
  std::string image =
      "\x7f"
      "ELF" +
      std::string(1, '\0') + key + "\n";
  while (image.size() < bytes) image += static_cast<char>(image.size() * 31 % 251);
  return {image, "warning about " + key, {"sm_90", false}};
}

inline bool is_right(const Result<Cubin>& result, const std::string& key, size_t bytes = 1000) {
  const Cubin expected = cubin_for(key, bytes);
  return result.ok() && result->image == expected.image && result->log == expected.log && result->target == expected.target;
}

// A cache whose compiler counts its calls.
struct CountingCache {
  explicit CountingCache(const fs::path& folder, std::string why_no_folder = {})
      : cache(
            folder, [this](const std::string& message) { warnings.push_back(message); }, std::move(why_no_folder)) {}

  Result<Cubin> get(const std::string& key, size_t bytes = 1000) {
    return cache.get(key, [&]() -> Result<Cubin> {
      ++compiled;
      return cubin_for(key, bytes);
    });
  }

  std::vector<std::string> warnings;
  std::atomic<int> compiled{0};
  CubinCache cache;
};

inline std::string read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_all(const fs::path& path, const std::string& content) { std::ofstream(path, std::ios::binary) << content; }

inline int files_in(const fs::path& folder, const std::string& part = "") {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(folder))
    count += entry.path().filename().string().find(part) != std::string::npos;
  return count;
}

// Forks; the child ends with whether `body` was right.
inline pid_t start_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  return child;
}

inline bool child_was_right(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace gemm::test
