#include "tuner/space.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

DeviceLimits turing() { return {75, 65536, 65536, 65536, 1024}; }

TEST(Space, TheShippedOneHasThousandsOfValidConfigurations) {
  const auto space = read_space(GEMM_SOURCE_DIR "/configs/space.json");
  ASSERT_TRUE(space.ok()) << space.error();
  const std::vector<KernelConfig> configs = valid_configs(*space, DeviceLimits{});
  EXPECT_GE(configs.size(), 3000u);
  std::set<std::string> ids;
  for (const KernelConfig& config : configs) {
    EXPECT_EQ(why_invalid(config, DeviceLimits{}), nullptr);
    EXPECT_TRUE(ids.insert(config_id(config)).second) << "twice: " << config_id(config);
  }
}

TEST(Space, OlderGpusKeepOnlyWhatTheyCanRun) {
  const auto space = read_space(GEMM_SOURCE_DIR "/configs/space.json");
  ASSERT_TRUE(space.ok()) << space.error();
  const std::vector<KernelConfig> configs = valid_configs(*space, turing());
  EXPECT_GE(configs.size(), 50u);
  for (const KernelConfig& config : configs) EXPECT_EQ(config.load, LoadPath::register_staged);
}

TEST(Space, VisitsEveryCombinationAndTheExtraOnes) {
  const auto space = parse_space(R"({"families": [{"name": "f", "BM": [64, 128], "BN": [64], "BK": [8, 16], "WM": [32],
      "WN": [32], "WNITER": [1], "TM": [4], "TN": [8], "stages": [2, 3, 4], "slices": [1], "min_blocks": [1],
      "load": ["async"], "order": ["rows", "columns"], "acc_init": ["plain"]}], "extra": [{"BM": 32, "BN": 32, "BK": 8,
      "WM": 32, "WN": 32, "WNITER": 1, "TM": 4, "TN": 8, "stages": 2, "slices": 1, "min_blocks": 1, "load": "async",
      "order": "rows", "acc_init": "plain"}]})",
                                 "test");
  ASSERT_TRUE(space.ok()) << space.error();
  size_t count = 0;
  space->for_each([&](const KernelConfig&) { ++count; });
  EXPECT_EQ(count, 2u * 2 * 3 * 2 + 1);
  EXPECT_EQ(space->combinations(), count);
}

TEST(Space, FamiliesAreOfTilesUnlessTheySayOtherwise) {
  const std::string family = R"({"name": "f", KIND "BM": [64], "BN": [64], "BK": [16], "WM": [32], "WN": [32], "WNITER": [1],
      "TM": [4], "TN": [8], "stages": [2], "slices": [1], "min_blocks": [1], "load": ["async"], "order": ["rows"],
      "acc_init": ["plain"]})";
  const struct {
    const char* kind;
    Family expected;
  } cases[] = {{"", Family::tile}, {R"("family": "stream",)", Family::stream}, {R"("family": "batch",)", Family::batch}};
  for (const auto& c : cases) {
    std::string text = R"({"families": [)" + family + "]}";
    text.replace(text.find("KIND"), 4, c.kind);
    const auto space = parse_space(text, "test");
    ASSERT_TRUE(space.ok()) << space.error();
    space->for_each([&](const KernelConfig& config) { EXPECT_EQ(config.family, c.expected); });
  }
}

TEST(Space, TheShippedOneHasEveryLoadPathAndFitsTheRanking) {
  const auto space = read_space(GEMM_SOURCE_DIR "/configs/space.json");
  ASSERT_TRUE(space.ok()) << space.error();
  const std::vector<KernelConfig> configs = valid_configs(*space, DeviceLimits{});
  EXPECT_LE(configs.size(), 45'000u) << "ranking looks at all of them for every problem";
  std::set<LoadPath> loads;
  for (const KernelConfig& config : configs) loads.insert(config.load);
  EXPECT_EQ(loads.size(), 6u);
}

TEST(Space, ShippedConfigurationsThatHaveWonAreValid) {
  for (const KernelConfig& config : read_space(GEMM_SOURCE_DIR "/configs/space.json").value_or_throw().extra)
    EXPECT_EQ(why_invalid(config, DeviceLimits{}), nullptr) << config_id(config);
}

TEST(Space, BadOnesAreRefusedWithTheReason) {
  const struct {
    const char* text;
    const char* expected;
  } cases[] = {
      {"", "parse error"},
      {"[]", "must be an object"},
      {"{}", "lists no configuration"},
      {R"({"familes": []})", "unknown key 'familes'"},
      {R"({"families": [{"BM": [64]}]})", "'name'"},
      {R"({"families": [{"name": "f", "BM": [64]}]})", "family 'f': parameter 'BN' is missing"},
      {R"({"families": [{"name": "f", "FOO": 8}]})", "family 'f': unknown parameter 'FOO'"},
      {R"({"families": [{"name": "f", "FOO": []}]})", "family 'f': unknown parameter 'FOO'"},
      {R"({"families": [{"name": "f", "BM": 8}]})", "family 'f': parameter 'BM' must be a list"},
      {R"({"families": [{"name": "f", "family": "pyramid"}]})", "'family' has the unknown value \"pyramid\""},
      {R"({"families": [{"name": "f", "family": ["tile"]}]})", "'family' has the unknown value"},
      {R"({"extra": [{"BM": 64, "BN": 64}]})", "extra configuration 1: parameter 'BK' is missing"},
      {R"({"extra": [{"BM": 64, "BZ": 3}]})", "unknown parameter 'BZ'"},
      {R"({"extra": [{"BM": "big"}]})", "'BM' must be a positive whole number"},
      {R"({"extra": [{"BM": 0}]})", "'BM' must be a positive whole number"},
      {R"({"extra": [{"load": "teleport"}]})", "'load' has the unknown value \"teleport\""},
      {R"({"extra": [7]})", "extra configuration 1"},
  };
  for (const auto& c : cases) {
    const auto space = parse_space(c.text, "test");
    ASSERT_FALSE(space.ok()) << c.text;
    EXPECT_NE(space.error().find(c.expected), std::string::npos) << space.error();
  }
  EXPECT_FALSE(read_space("/nowhere/space.json").ok());
}

std::string repeated(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Space, DeepNestingIsRefused) {
  for (const std::string start : {R"({"families":)", R"({"extra":)"}) {
    const auto space = parse_space(start + repeated("[", 100'000) + repeated("]", 100'000) + "}", "test");
    ASSERT_FALSE(space.ok());
    EXPECT_NE(space.error().find("nested"), std::string::npos) << space.error();
  }
}

TEST(Space, CombinationsBeyond64BitsAreRefusedToo) {
  const std::string many = "[" + repeated("1,", 255) + "1]";
  std::string text = R"({"families": [{"name": "f", "slices": [1], "min_blocks": [1], "stages": [2], "load": ["async"],
      "order": ["rows"], "acc_init": ["plain"])";
  for (const char* name : {"BM", "BN", "BK", "WM", "WN", "WNITER", "TM", "TN"})
    text += std::string(", \"") + name + "\": " + many;
  const auto space = parse_space(text + "}]}", "test");
  ASSERT_FALSE(space.ok());
  EXPECT_NE(space.error().find("combinations; the limit is 50000000"), std::string::npos) << space.error();
}

TEST(Space, HashesTellSpacesApart) {
  KernelConfig a, b;
  b.stages = 4;
  EXPECT_EQ(hash_of(std::vector{a, b}), hash_of(std::vector{a, b}));
  EXPECT_NE(hash_of(std::vector{a, b}), hash_of(std::vector{a}));
  EXPECT_NE(hash_of(std::vector{a}), hash_of(std::vector{b}));
  EXPECT_EQ(kernel_source_hash().size(), 16u);
}

}  // namespace
}  // namespace gemm
