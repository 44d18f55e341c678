// Written tables keep to configs/table.schema.json, judged by python3-jsonschema, and the schema refuses wrong ones.
#include <gtest/gtest.h>

#include <fstream>

#include "command.h"
#include "dispatch_cases.h"

namespace gemm::test {
namespace {

const std::string kSource = GEMM_SOURCE_DIR;

// Each path quoted and preceded by a blank.
CommandResult validate(const std::string& paths) {
  return run_command("python3 '" + kSource + "/tests/validate_table.py' '" + kSource + "/configs/table.schema.json'" +
                     paths);
}

class Schema : public testing::Test {
 protected:
  void SetUp() override {
    if (run_command("python3 -W ignore -c 'import jsonschema; jsonschema.Draft202012Validator'").exit_code != 0)
      GTEST_SKIP() << "python3-jsonschema (version 4 or newer) is not installed, so tables were not validated";
  }
  // The argument for validate().
  std::string write(const std::string& text, const std::string& name = "table.json") {
    std::ofstream(folder_.file(name)) << text;
    return quoted(folder_.file(name));
  }
  static std::string quoted(const std::string& path) { return " '" + path + "'"; }
  TemporaryFolder folder_;
};

std::string sample_text() {
  Table table = table_of(default_emulator_options().info, {emulated_configs().front(), 2, Reduction::kernel},
                         {packed_problem(16, 16, 16), packed_problem(64, 64, 64, Op::T, Op::N, 7)});
  table.environment = {{"driver", "none"}};
  table.points[0].cublas_us = 4;
  table.points[0].ties = {"one"};
  TablePoint none;
  none.problem = packed_problem(5, 5, 5);
  none.use_cublas = true;
  table.points.push_back(none);
  for (const KernelConfig& config : emulated_configs())
    if (!table.find_kernel(config_id(config))) table.portfolio.push_back(portfolio_kernel(config));
  return to_json(table);
}

TEST_F(Schema, AcceptsAWrittenTable) {
  const CommandResult result = validate(write(sample_text()));
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

TEST_F(Schema, AcceptsTheTablesOfThisRepository) {
  for (const auto& entry : std::filesystem::directory_iterator(kSource + "/configs")) {
    std::vector<std::string> warnings;
    if (entry.path().extension() != ".json" || !load_table(entry.path(), &warnings)) continue;
    const CommandResult result = validate(quoted(entry.path()));
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_TRUE(warnings.empty()) << entry.path() << ": " << warnings[0];
  }
}

TEST_F(Schema, RefusesWrongTables) {
  const struct {
    std::string from, to;
  } cases[] = {{"\"version\": 1", "\"version\": 2"},
               {"\"median\": 10.0", "\"median\": -10.0"},
               {"\"median\": 10.0", "\"median\": null"},
               {"\"split_k\": 2", "\"split_k\": 0"},
               {"\"reduction\": \"kernel\", ", ""},
               {"\"use\": \"kernel\"", "\"use\": \"magma\""},
               {"\"use\": \"cublas\"", "\"use\": \"kernel\""},
               {"\"ops\": \"NN\"", "\"ops\": \"XY\""},
               {"\"TM\": 4", "\"TM\": 3"},
               {"\"sm_count\": 132,", ""},
               {"\"ties\": []", "\"ties\": [], \"tie\": []"}};
  std::string paths;
  for (size_t i = 0; i < std::size(cases); ++i) {
    std::string text = sample_text();
    const size_t at = text.find(cases[i].from);
    ASSERT_NE(at, std::string::npos) << cases[i].from;
    paths += write(text.replace(at, cases[i].from.size(), cases[i].to), std::to_string(i) + ".json");
  }
  const CommandResult result = validate(paths);
  EXPECT_EQ(result.exit_code, 1);
  for (size_t i = 0; i < std::size(cases); ++i)
    EXPECT_NE(result.output.find("/" + std::to_string(i) + ".json: $"), std::string::npos)
        << cases[i].to << " was accepted:\n"
        << result.output;
}

}  // namespace
}  // namespace gemm::test
