// The cubin cache: hits, damage, key gaps, races between threads and processes, folders that cannot be used. The compiler is
// a fake, so none of this needs NVRTC.
#include "kernels/cubin_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <thread>
#include <vector>

#include "kernels/cubin_entry.h"
#include "kernels/sha256.h"

namespace gemm {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "gemm-cache-XXXXXX").string();
    if (!mkdtemp(name.data())) throw Error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::permissions(path_, fs::perms::owner_all, ignored);
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Cubin cubin_for(const std::string& key, size_t bytes = 1000) {
  std::string image =
      "\x7f"
      "ELF" +
      std::string(1, '\0') + key + "\n";
  while (image.size() < bytes) image += static_cast<char>(image.size() * 31 % 251);
  return {image, "warning about " + key, {"sm_90", false}};
}

bool is_right(const Result<Cubin>& result, const std::string& key, size_t bytes = 1000) {
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

std::string read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_all(const fs::path& path, const std::string& content) { std::ofstream(path, std::ios::binary) << content; }

int files_in(const fs::path& folder, const std::string& part = "") {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(folder))
    count += entry.path().filename().string().find(part) != std::string::npos;
  return count;
}

// Forks; the child ends with whether `body` was right.
pid_t start_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  return child;
}

bool child_was_right(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Sha256, PublishedExamples) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(CubinEntry, KeepsEveryField) {
  Cubin cubin = cubin_for("key");
  cubin.target = {"compute_121", true};
  const auto read = read_cubin_entry(write_cubin_entry("key", cubin), "key");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->image, cubin.image);
  EXPECT_EQ(read->log, cubin.log);
  EXPECT_EQ(read->target, cubin.target);
}

TEST(CubinCache, CompilesOnceThenReadsTheDisk) {
  const TemporaryFolder folder;
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
  const TemporaryFolder folder;
  CountingCache cache(folder.path());
  for (const std::string key : {"", "a", "b", "ab", "a\n", "sm_90 -O3", "sm_80 -O3"})
    EXPECT_TRUE(is_right(cache.get(key), key)) << key;
  EXPECT_EQ(cache.compiled, 7);
}

struct Damage {
  const char* name;
  std::function<void(const fs::path& entry)> inflict;
};

void flip_bit(const fs::path& entry, size_t position) {
  std::string content = read_all(entry);
  content.at(position) = static_cast<char>(content.at(position) ^ 0x10);
  write_all(entry, content);
}

const std::vector<Damage>& damages() {
  static const std::vector<Damage> list = {
      {"0 bytes", [](const fs::path& e) { fs::resize_file(e, 0); }},
      {"1 byte", [](const fs::path& e) { fs::resize_file(e, 1); }},
      {"half", [](const fs::path& e) { fs::resize_file(e, fs::file_size(e) / 2); }},
      {"last byte missing", [](const fs::path& e) { fs::resize_file(e, fs::file_size(e) - 1); }},
      {"a byte too many", [](const fs::path& e) { write_all(e, read_all(e) + "x"); }},
      {"another architecture's ELF",
       [](const fs::path& e) {
         write_all(e,
                   "\x7f"
                   "ELF" +
                       std::string(5000, '\x02'));
       }},
      {"another key's entry", [](const fs::path& e) { write_all(e, write_cubin_entry("other", cubin_for("other"))); }},
      {"another version",
       [](const fs::path& e) {
         std::string content = read_all(e);
         content.replace(content.find('1'), 1, "0");
         write_all(e, content);
       }},
      {"an empty image",
       [](const fs::path& e) {
         Cubin cubin = cubin_for("a");
         cubin.image.clear();
         write_all(e, write_cubin_entry("a", cubin));
       }},
      {"random bytes",
       [](const fs::path& e) {
         std::mt19937 random(7);
         std::string content(3000, '\0');
         for (char& c : content) c = static_cast<char>(random());
         write_all(e, content);
       }},
      {"a flipped bit in the magic", [](const fs::path& e) { flip_bit(e, 3); }},
      {"a flipped bit in the checksum", [](const fs::path& e) { flip_bit(e, 20); }},
      {"a flipped bit in a size", [](const fs::path& e) { flip_bit(e, 77); }},
      {"a flipped bit in the image", [](const fs::path& e) { flip_bit(e, fs::file_size(e) - 10); }},
      {"a folder",
       [](const fs::path& e) {
         fs::remove(e);
         fs::create_directory(e);
       }},
      {"a folder with a file in it",
       [](const fs::path& e) {
         fs::remove(e);
         fs::create_directory(e);
         write_all(e / "file", "x");
       }},
      {"a pipe",
       [](const fs::path& e) {
         fs::remove(e);
         ASSERT_EQ(mkfifo(e.c_str(), 0600), 0);
       }},
      {"a dangling link",
       [](const fs::path& e) {
         fs::remove(e);
         fs::create_symlink("nowhere", e);
       }},
  };
  return list;
}

TEST(CubinCache, DamagedEntriesAreRebuiltAndReplaced) {
  for (const Damage& damage : damages()) {
    SCOPED_TRACE(damage.name);
    const TemporaryFolder folder;
    CountingCache cache(folder.path());
    cache.get("a");
    damage.inflict(cache.cache.entry_path("a"));
    EXPECT_TRUE(is_right(cache.get("a"), "a"));
    EXPECT_EQ(cache.compiled, 2) << "the damage was not noticed";
    EXPECT_TRUE(is_right(cache.get("a"), "a"));
    EXPECT_EQ(cache.compiled, 2) << "the entry was not replaced";
    EXPECT_EQ(files_in(folder.path()), 1);
    EXPECT_TRUE(cache.warnings.empty());
  }
}

TEST(CubinCache, DiscardedEntryIsCompiledAgain) {
  const TemporaryFolder folder;
  CountingCache cache(folder.path());
  cache.get("a");
  cache.cache.discard("a");
  EXPECT_TRUE(is_right(cache.get("a"), "a"));
  EXPECT_EQ(cache.compiled, 2);
}

TEST(CubinCache, FailuresAreReportedAndNotKept) {
  const TemporaryFolder folder;
  CountingCache cache(folder.path());
  const auto failed = cache.cache.get("a", []() -> Result<Cubin> { return Failure{"syntax error"}; });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error(), "syntax error");
  EXPECT_THROW(cache.cache.get("a", []() -> Result<Cubin> { throw Error("broken"); }), Error);
  EXPECT_TRUE(is_right(cache.get("a"), "a"));
  EXPECT_EQ(cache.compiled, 1);
}

TEST(CubinCache, ThreadsShareOneCompilation) {
  const TemporaryFolder folder;
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
  const TemporaryFolder folder;
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
  const TemporaryFolder folder;
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

TEST(CubinCache, RemovesOnlyOldTemporaries) {
  const TemporaryFolder folder;
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

// Works, compiles each time, and warns once.
bool works_without_cache(const fs::path& folder) {
  CountingCache cache(folder, "no folder");
  const bool right = is_right(cache.get("a"), "a") && is_right(cache.get("a"), "a") && is_right(cache.get("b"), "b");
  return right && cache.compiled == 3 && cache.warnings.size() == 1 &&
         cache.warnings[0].find("GEMM_CACHE_DIR") != std::string::npos;
}

TEST(CubinCache, WorksWithoutAFolder) { EXPECT_TRUE(works_without_cache({})); }

TEST(CubinCache, WorksWhereTheFolderCannotBeMade) {
  const TemporaryFolder folder;
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
  const TemporaryFolder folder;
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
  const TemporaryFolder folder;  // mode 700 of root
  CountingCache(folder.path()).get("a");
  EXPECT_TRUE(as_ordinary_user([&] { return works_without_cache(folder.path()); }));
}

TEST(CubinCache, WorksOnAFullDisk) {
  const TemporaryFolder folder;
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
}  // namespace gemm
