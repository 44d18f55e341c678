// A cubin cache that threads and processes share, and that some of them are killed in.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "cubin_cache_fixture.h"

namespace gemm::test {
namespace {

TEST(CubinCache, ThreadsShareOneCompilation) {
  const CacheFolder folder;
  CountingCache cache(folder.path());
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  threads.reserve(16);
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      const auto slow = [&]() -> Result<Cubin> {
        ++cache.compiled;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        return cubin_for("a");
      };
      right += is_right(cache.cache.get("a", slow), "a");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 16);
  EXPECT_EQ(cache.compiled, 1);
}

// Every thread asks for every key, each beginning with another one.
bool all_keys_from_16_threads(const fs::path& folder) {
  constexpr int kKeys = 8;
  CountingCache cache(folder);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  threads.reserve(16);
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kKeys; ++i) {
        const std::string key = "kernel " + std::to_string((i + t) % kKeys);
        right += is_right(cache.get(key, 20000), key, 20000);
      }
    });
  for (std::thread& thread : threads) thread.join();
  return right == 16 * kKeys && cache.warnings.empty();
}

TEST(CubinCache, ColdStartOf16ProcessesWith16Threads) {
  const CacheFolder folder;
  std::vector<pid_t> children;
  children.reserve(16);
  for (int i = 0; i < 16; ++i) children.push_back(start_child([&] { return all_keys_from_16_threads(folder.path()); }));
  for (const pid_t child : children) EXPECT_TRUE(child_was_right(child));
  EXPECT_EQ(files_in(folder.path()), 8) << "temporary files are left, or entries are missing";
  CountingCache later(folder.path());
  for (int i = 0; i < 8; ++i)
    EXPECT_TRUE(is_right(later.get("kernel " + std::to_string(i), 20000), "kernel " + std::to_string(i), 20000));
  EXPECT_EQ(later.compiled, 0);
}

TEST(CubinCache, KillInMidWriteLeavesNothingWrong) {
  const CacheFolder folder;
  constexpr size_t kBytes = 300000;
  const auto rewrite_for_ever = [&] {
    CountingCache cache(folder.path());
    while (true) {
      cache.get("a", kBytes);
      cache.cache.discard("a");
    }
    return true;
  };
  for (int i = 0; i < 20; ++i) {
    const pid_t child = start_child(rewrite_for_ever);
    std::this_thread::sleep_for(std::chrono::microseconds(3000 + 1711 * i));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    CountingCache cache(folder.path());
    ASSERT_TRUE(is_right(cache.get("a", kBytes), "a", kBytes)) << "after kill " << i;
    ASSERT_TRUE(cache.warnings.empty());
  }
}

}  // namespace
}  // namespace gemm::test
