// An entry of the cubin cache: its fields come back, and any damage to its file is a miss.
#include "kernels/cubin_entry.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>

#include "cubin_cache_fixture.h"
#include "kernels/sha256.h"

namespace gemm::test {
namespace {

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
    const CacheFolder folder;
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

}  // namespace
}  // namespace gemm::test
