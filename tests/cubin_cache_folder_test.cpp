// Which folder the cubin cache takes, and that it works where a folder cannot be used.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <optional>

#include "cubin_cache_fixture.h"

namespace gemm::test {
namespace {

// Works, compiles each time, and warns once.
bool works_without_cache(const fs::path& folder) {
  CountingCache cache(folder, "no folder");
  const bool right = is_right(cache.get("a"), "a") && is_right(cache.get("a"), "a") && is_right(cache.get("b"), "b");
  return right && cache.compiled == 3 && cache.warnings.size() == 1 &&
         cache.warnings[0].find("GEMM_CACHE_DIR") != std::string::npos;
}

TEST(CubinCache, WorksWithoutAFolder) { EXPECT_TRUE(works_without_cache({})); }

TEST(CubinCache, WorksWhereTheFolderCannotBeMade) {
  const CacheFolder folder;
  write_all(folder.path() / "file", "x");
  EXPECT_TRUE(works_without_cache(folder.path() / "file" / "gemm"));
  EXPECT_TRUE(works_without_cache(folder.path() / "file"));
  EXPECT_TRUE(works_without_cache("/proc/gemm"));
}

// Permissions do not bind root, so the child becomes somebody else first.
bool as_ordinary_user(const std::function<bool()>& body) {
  constexpr uid_t kNobody = 65534;
  return child_was_right(start_child([&] { return (geteuid() != 0 || setuid(kNobody) == 0) && body(); }));
}

TEST(CubinCache, WorksInAReadOnlyFolder) {
  const CacheFolder folder;
  const fs::path cache_folder = folder.path() / "gemm";
  fs::permissions(folder.path(), fs::perms(0755));
  fs::create_directory(cache_folder);
  fs::permissions(cache_folder, fs::perms(0555));
  EXPECT_TRUE(as_ordinary_user([&] { return works_without_cache(cache_folder); }));
  EXPECT_EQ(files_in(cache_folder), 0);
  fs::permissions(cache_folder, fs::perms(0755));
}

TEST(CubinCache, WorksInAFolderOfAnotherOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a folder that belongs to somebody else";
  const CacheFolder folder;  // mode 700 of root
  CountingCache(folder.path()).get("a");
  EXPECT_TRUE(as_ordinary_user([&] { return works_without_cache(folder.path()); }));
}

TEST(CubinCache, WorksOnAFullDisk) {
  const CacheFolder folder;
  const auto with_full_disk = [&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{500, 500};  // writing fails in the middle of an entry
    return setrlimit(RLIMIT_FSIZE, &limit) == 0 && works_without_cache(folder.path());
  };
  EXPECT_TRUE(child_was_right(start_child(with_full_disk)));
  EXPECT_EQ(files_in(folder.path()), 0) << "a part of an entry is left";
}

class Environment {
 public:
  Environment(const char* gemm, const char* xdg, const char* home) {
    set("GEMM_CACHE_DIR", gemm);
    set("XDG_CACHE_HOME", xdg);
    set("HOME", home);
  }
  ~Environment() {
    for (const auto& [name, value] : before_) value ? setenv(name, value->c_str(), 1) : unsetenv(name);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void set(const char* name, const char* value) {
    const char* old = std::getenv(name);
    before_.emplace_back(name, old ? std::optional<std::string>(old) : std::nullopt);
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

TEST(CubinCacheFolder, FollowsTheEnvironment) {
  struct Case {
    const char *gemm, *xdg, *home;
    fs::path folder;  // empty: none is usable
  };
  const std::vector<Case> cases = {
      {"/g", "/x", "/h", "/g"},
      {"", "/x", "/h", "/x/gemm"},
      {nullptr, "/x", "/h", "/x/gemm"},
      {nullptr, nullptr, "/h", "/h/.cache/gemm"},
      {nullptr, "", "/h", "/h/.cache/gemm"},
      {nullptr, "relative", "/h", "/h/.cache/gemm"},
      {"relative", nullptr, nullptr, fs::current_path() / "relative"},
      {"/g", nullptr, nullptr, "/g"},
      {nullptr, nullptr, nullptr, ""},
      {nullptr, nullptr, "", ""},
      {nullptr, nullptr, "/", ""},
      {nullptr, nullptr, "//", ""},
      {nullptr, nullptr, "relative", ""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message() << (c.gemm ? c.gemm : "-") << " " << (c.xdg ? c.xdg : "-") << " "
                                    << (c.home ? c.home : "-"));
    const Environment environment(c.gemm, c.xdg, c.home);
    const Result<fs::path> folder = cubin_cache_folder();
    EXPECT_EQ(folder.ok(), !c.folder.empty());
    if (folder)
      EXPECT_EQ(*folder, c.folder);
    else
      EXPECT_NE(folder.error().find("HOME"), std::string::npos);
  }
}

}  // namespace
}  // namespace gemm::test
