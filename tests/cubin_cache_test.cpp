// What the cubin cache compiles, and what it finds.
#include "kernels/cubin_cache.h"

#include <gtest/gtest.h>

#include <chrono>

#include "cubin_cache_fixture.h"

namespace gemm::test {
namespace {

TEST(CubinCache, CompilesOnceThenReadsTheDisk) {
  const CacheFolder folder;
  CountingCache first(folder.path() / "new" / "gemm");
  EXPECT_TRUE(is_right(first.get("a"), "a"));
  EXPECT_TRUE(is_right(first.get("a"), "a"));
  EXPECT_EQ(first.compiled, 1);
  CountingCache other_process(folder.path() / "new" / "gemm");
  EXPECT_TRUE(is_right(other_process.get("a"), "a"));
  EXPECT_EQ(other_process.compiled, 0);
  EXPECT_TRUE(first.warnings.empty());
}

TEST(CubinCache, EveryOtherKeyIsAMiss) {
  const CacheFolder folder;
  CountingCache cache(folder.path());
  for (const std::string key : {"", "a", "b", "ab", "a\n", "sm_90 -O3", "sm_80 -O3"})
    EXPECT_TRUE(is_right(cache.get(key), key)) << key;
  EXPECT_EQ(cache.compiled, 7);
}

TEST(CubinCache, DiscardedEntryIsCompiledAgain) {
  const CacheFolder folder;
  CountingCache cache(folder.path());
  cache.get("a");
  cache.cache.discard("a");
  EXPECT_TRUE(is_right(cache.get("a"), "a"));
  EXPECT_EQ(cache.compiled, 2);
}

TEST(CubinCache, FailuresAreReportedAndNotKept) {
  const CacheFolder folder;
  CountingCache cache(folder.path());
  const auto failed = cache.cache.get("a", []() -> Result<Cubin> { return Failure{"syntax error"}; });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error(), "syntax error");
  EXPECT_THROW(cache.cache.get("a", []() -> Result<Cubin> { throw Error("broken"); }), Error);
  EXPECT_TRUE(is_right(cache.get("a"), "a"));
  EXPECT_EQ(cache.compiled, 1);
}

TEST(CubinCache, RemovesOnlyOldTemporaries) {
  const CacheFolder folder;
  const fs::path old_file = folder.path() / "x.cubin-entry.tmp-1-aaaaaa",
                 new_file = folder.path() / "x.cubin-entry.tmp-1-bbbbbb";
  write_all(old_file, "half");
  write_all(new_file, "half");
  fs::last_write_time(old_file, fs::file_time_type::clock::now() - std::chrono::hours(2));
  CountingCache cache(folder.path());
  cache.get("a");
  EXPECT_FALSE(fs::exists(old_file));
  EXPECT_TRUE(fs::exists(new_file));
}

}  // namespace
}  // namespace gemm::test
