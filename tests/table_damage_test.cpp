// Damaged tables: what is unreadable as a whole fails with a position; an entry that cannot be used is left out with one
// warning and the rest is used.
#include <gtest/gtest.h>

#include <random>

#include "dispatch/selector.h"
#include "dispatch_cases.h"

namespace gemm::test {
namespace {

std::string sample_text() {
  static const std::string text =
      to_json(table_of(default_emulator_options().info, {emulated_configs().front(), 1, Reduction::ticket},
                       {packed_problem(16, 16, 16), packed_problem(64, 64, 64)}));
  return text;
}

// The sample with the last `from` replaced: the last kernel is the only one, the last point is 64x64x64.
std::string damaged(const std::string& from, const std::string& to) {
  std::string text = sample_text();
  const size_t at = text.rfind(from);
  if (at == std::string::npos) throw Error("the sample has no " + from);
  return text.replace(at, from.size(), to);
}

TEST(TableDamage, UnparsableTextFailsWithItsPosition) {
  const std::string whole = sample_text();
  const struct {
    std::string text, message;
  } cases[] = {
      {"", "empty"},
      {"{\"a\":1,}", "line 1, column 8"},
      {"\xEF\xBB\xBF" + whole, "line 1, column 1"},
      {whole + "}", "line"},
      {whole.substr(0, whole.size() / 2), "line"},
      {"\n\n  nonsense", "line 3"},
      {std::string(200000, '['), "levels deep"},
      {"{\"version\": " + std::string(200000, '[') + std::string(200000, ']') + "}", "levels deep"},
      {std::string("\0\0\0\0", 4), "line 1"},
      {"{\"version\": 1e999}", "1e999"},
      {"\"\xff\xfe\"", "line 1"},
      {"{}", "\"version\" is missing"},
      {"[]", "must be an object"},
      {"null", "must be an object"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> warnings;
    const Result<Table> table = parse_table(c.text, &warnings);
    ASSERT_FALSE(table) << c.text.substr(0, 40);
    EXPECT_NE(table.error().find(c.message), std::string::npos) << table.error();
    EXPECT_TRUE(warnings.empty());
  }
}

TEST(TableDamage, AHeadThatCannotBeUsedFailsByName) {
  const struct {
    std::string from, to, message;
  } cases[] = {
      {"\"version\": 1", "\"version\": 2", "version 2"},
      {"\"version\": 1", "\"version\": \"1\"", "\"version\""},
      {"\"modelled\"", "\"guessed\"", "\"provenance\""},
      {"\"sm_count\": 132", "\"sm_count\": 0", "\"sm_count\""},
      {"\"compute_capability\": 90", "\"compute_capability\": null", "\"compute_capability\""},
      {"\"registers_per_sm\"", "\"registers\"", "\"registers_per_sm\" is missing"},
      {"\"points\": [", "\"point\": [", "\"points\" is missing"},
  };
  for (const auto& c : cases) {
    const Result<Table> table = parse_table(damaged(c.from, c.to), nullptr);
    ASSERT_FALSE(table) << c.to;
    EXPECT_NE(table.error().find(c.message), std::string::npos) << table.error();
  }
}

TEST(TableDamage, APointThatCannotBeUsedIsLeftOutAlone) {
  const std::string kernel = config_id(emulated_configs().front());
  const struct {
    std::string from, to, message;
  } cases[] = {
      {"\"time_us\": {\"median\": 10.0, \"p20\": 9.0, \"p80\": 11.0, \"n\": 20}", "\"time_us\": null", "null"},
      {"\"median\": 10.0", "\"median\": NaN", "NaN"},
      {"\"median\": 10.0", "\"median\": -Infinity", "Infinity"},
      {"\"median\": 10.0", "\"median\": -1", "median"},
      {"\"median\": 10.0", "\"median\": 0", "median"},
      {"\"median\": 10.0", "\"median\": 1e400", "median"},
      {"\"median\": 10.0", "\"median\": -1E+999", "median"},
      {"\"median\": 10.0", "\"median\": \"10\"", "median"},
      {"\"n\": 20", "\"n\": 2.5", "\"n\""},
      {"\"split_k\": 1", "\"split_k\": 0", "split_k"},
      {"\"split_k\": 1", "\"split_k\": -1", "split_k"},
      {"\"split_k\": 1", "\"split_k\": 100000", "split_k"},
      {"\"split_k\": 1", "\"split_k\": 18446744073709551615", "split_k"},
      {"\"kernel\": \"" + kernel, "\"kernel\": \"tile_of_nobody", "not in the portfolio"},
      {"\"kernel\": \"" + kernel + "\"", "\"kernel\": 7", "\"kernel\""},
      {"\"reduction\": \"ticket\"", "\"reduction\": \"atomic\"", "reduction"},
      {"\"reduction\": \"ticket\"", "\"reduction\": \"ticket\", \"relayout\": \"ba\"", "relayout"},
      {"\"use\": \"kernel\"", "\"use\": \"magma\"", "use"},
      {"\"ops\": \"NN\"", "\"ops\": \"NX\"", "ops"},
      {"\"m\": 64", "\"m\": 0", "\"m\""},
      {"\"m\": 64", "\"m\": 4294967296", "\"m\""},
      {"\"m\": 64, \"n\": 64, \"k\": 64", "\"m\": 16, \"n\": 16, \"k\": 16", "twice"},
      {"\"ties\": []", "\"ties\": [1]", "ties"},
      {"\"ties\": []", "\"ties\": [], \"cublas_us\": null", "cublas_us"},
      {"{\"problem\"", "7, {\"problem\"", "must be an object"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> warnings;
    const Result<Table> table = parse_table(damaged(c.from, c.to), &warnings);
    ASSERT_TRUE(table) << c.to << ": " << table.error();
    ASSERT_EQ(warnings.size(), 1u) << c.to;
    EXPECT_NE(warnings[0].find(c.message), std::string::npos) << warnings[0];
    EXPECT_NE(warnings[0].find("points[1]"), std::string::npos) << warnings[0];
    EXPECT_TRUE(Selector(&*table, table->device).find_point(packed_problem(16, 16, 16))) << c.to;
    EXPECT_EQ(table->points.size(), c.to[0] == '7' ? 2u : 1u) << c.to;
  }
}

TEST(TableDamage, AKernelThatCannotRunIsLeftOutWithItsPoints) {
  const struct {
    std::string from, to, message;
  } cases[] = {
      {"\"BM\": 64, \"BN\": 64", "\"BM\": 7, \"BN\": 13", "cannot run"},
      {"\"BM\": 64", "\"BM\": -64", "\"BM\""},
      {"\"BM\": 64", "\"BM\": 1e9", "\"BM\""},
      {"\"TM\": 4", "\"TM\": null", "\"TM\""},
      {"\"order\": \"rows\"", "\"order\": \"columns\"", "its parameters are those of"},
      {"\"load\": \"async_transpose\"", "\"load\": \"texture\"", "\"load\""},
      {"\"family\": \"tile\"", "\"family\": \"naive\"", "\"family\""},
      {"\"registers\": 100", "\"registers\": -1", "\"registers\""},
      {"\"registers\": 100", "\"registers\": 134217728", "\"registers\""},
      {"\"shared_bytes\": ", "\"shared_bytes\": 99999999", "\"shared_bytes\""},
      {"\"threads\": ", "\"threads\": 9", "\"threads\""},
  };
  for (const auto& c : cases) {
    std::vector<std::string> warnings;
    const Result<Table> table = parse_table(damaged(c.from, c.to), &warnings);
    ASSERT_TRUE(table) << c.to << ": " << table.error();
    EXPECT_TRUE(table->portfolio.empty());
    EXPECT_TRUE(table->points.empty());
    ASSERT_EQ(warnings.size(), 3u) << c.to;  // the kernel and each of its two points
    EXPECT_NE(warnings[0].find(c.message), std::string::npos) << warnings[0];
  }
}

// What a kernel is predicted by is no part of what runs.
TEST(TableDamage, AKernelWithDamagedTraitsIsUsedButNotPredicted) {
  const struct {
    std::string fields, message;
  } cases[] = {
      {"\"traits\": null", "\"traits\" is null"},
      {"\"traits\": [[1, 2, 3]]", "an array of 64 numbers"},
      {"\"traits\": [1]", "an array of 64 numbers"},
      {"\"traits\": {}", "an array of arrays"},
      {"\"traits\": NaN", "NaN"},
      {"\"model_factor\": -1", "\"model_factor\" is -1"},
      {"\"model_factor\": 1e400", "\"model_factor\""},
      {"\"model_factor\": 1.5, \"traits\": [[]]", "an array of 64 numbers"},
  };
  const Problem tuned = packed_problem(16, 16, 16), other = packed_problem(20, 30, 40);
  for (const auto& c : cases) {
    std::vector<std::string> warnings;
    const Result<Table> table = parse_table(damaged("\"registers\": 100", "\"registers\": 100, " + c.fields), &warnings);
    ASSERT_TRUE(table) << c.fields << ": " << table.error();
    ASSERT_EQ(warnings.size(), 1u) << c.fields;
    EXPECT_NE(warnings[0].find("portfolio[0]"), std::string::npos) << warnings[0];
    EXPECT_NE(warnings[0].find("is not predicted for problems that were not tuned"), std::string::npos) << warnings[0];
    EXPECT_NE(warnings[0].find(c.message), std::string::npos) << warnings[0];
    ASSERT_EQ(table->portfolio.size(), 1u) << c.fields;
    EXPECT_TRUE(table->portfolio[0].traits.empty() && !table->portfolio[0].model_factor) << c.fields;
    EXPECT_EQ(table->points.size(), 2u) << c.fields;
    const Selector selector(&*table, table->device);
    EXPECT_TRUE(selector.find_point(tuned)) << c.fields;
    EXPECT_NE(selector.choose(other, kWorkspaceBytes).candidates.front().rule, Rule::predicted) << c.fields;
  }
}

TEST(TableDamage, NoDamagedByteCrashesOrInventsAnEntry) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string text = sample_text();
    const size_t at = random() % text.size();
    switch (random() % 3) {
      case 0: text[at] = static_cast<char>(random() % 256); break;
      case 1: text.erase(at, 1 + random() % 40); break;
      default: text.insert(at, text.substr(random() % text.size(), 30));
    }
    const Result<Table> table = parse_table(text, nullptr);
    if (!table) continue;
    for (const TablePoint& point : table->points) {
      EXPECT_TRUE(point.kernel.empty() ? point.use_cublas : table->find_kernel(point.kernel) != nullptr);
      EXPECT_GT(point.problem.m, 0);
      EXPECT_GE(point.split_k, 1);
    }
  }
}

TEST(TableDamage, FilesThatAreNoTablesAreNamed) {
  const TemporaryFolder folder;
  for (const std::string& path : {folder.path(), folder.file("missing.json"), std::string("/dev/zero")}) {
    const Result<Table> table = load_table(path, nullptr);
    ASSERT_FALSE(table) << path;
    EXPECT_NE(table.error().find(path), std::string::npos) << table.error();
  }
}

}  // namespace
}  // namespace gemm::test
