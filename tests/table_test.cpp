// The table: writing, reading back, finding, matching a device, saving.
#include "dispatch/table.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "dispatch/selector.h"
#include "dispatch_cases.h"

namespace gemm::test {
namespace {

// The point of the same sizes, ops and batch count.
const TablePoint* find_point(const Table& table, const Problem& problem) {
  return Selector(&table, table.device).find_point(problem);
}

Table sample() {
  const std::vector<KernelConfig>& configs = emulated_configs();
  Table table = table_of(default_emulator_options().info, {configs[1], 4, Reduction::kernel},
                         {packed_problem(64, 64, 64, Op::T, Op::N, 3), packed_problem(8, 4096, 512, Op::N, Op::T)});
  table.portfolio.push_back(portfolio_kernel(configs[0]));
  table.portfolio[0].model_factor = 1.25;
  TimeNetwork network;
  network.problem[23][31] = 0.5F, network.choice[18][0] = -2, network.second[31][7] = 0.25F;
  network.second_bias[1] = 1, network.last[7] = 3, network.last_bias = -0.125F;
  network.cublas.emplace()[5] = 7;
  table.learned_model = LearnedModel{{network, TimeNetwork{}}, 850};
  table.portfolio[1].traits.resize(2);
  table.portfolio[1].traits[1][3] = 1.5F;
  table.certificate.emplace().box = {200, 0.97, 0.88, 0.5, packed_problem(553, 553, 553, Op::T, Op::N), 1.25, 0.95, 7};
  table.portfolio_curve = {0.5, 0.75, 1};
  table.environment = {{"driver", "none"}, {"command", "gemm-tune \"a\" \n\\"}};
  table.method = {{"statistic", "median"}};
  TablePoint none;
  none.problem = packed_problem(5, 5, 5);
  none.use_cublas = true;
  none.cublas_us = 3.25;
  table.points.push_back(none);
  table.points[0].use_cublas = true;
  table.points[0].cublas_us = 9.5;
  table.points[0].cublaslt_best_us = 9.25;
  table.points[0].max_scaled_error = 0.0123456;
  table.points[0].ties = {"b", "a"};
  table.points[0].relayout = Relayout::ab;
  return table;
}

TEST(Table, ReadsBackWhatItWrites) {
  const Table table = sample();
  std::vector<std::string> warnings;
  const Table back = parse_table(to_json(table), &warnings).value_or_throw();
  EXPECT_TRUE(warnings.empty()) << warnings[0];
  EXPECT_EQ(to_json(back), to_json(table));
  EXPECT_EQ(back.device.name, table.device.name);
  EXPECT_TRUE(back.device.emulated);
  EXPECT_EQ(back.device.memory_bytes, table.device.memory_bytes);
  EXPECT_EQ(back.device.limits.shared_bytes_per_block, table.device.limits.shared_bytes_per_block);
  EXPECT_EQ(back.environment, table.environment);
  ASSERT_EQ(back.points.size(), 3u);
  const TablePoint* point = find_point(back, packed_problem(64, 64, 64, Op::T, Op::N, 3));
  ASSERT_TRUE(point);
  EXPECT_TRUE(point->use_cublas);
  EXPECT_EQ(point->kernel, table.points[0].kernel);
  EXPECT_EQ(point->split_k, 4);
  EXPECT_EQ(point->reduction, Reduction::kernel);
  EXPECT_EQ(point->relayout, Relayout::ab);
  EXPECT_EQ(point->time_us.n, 20);
  EXPECT_EQ(point->cublas_us, 9.5);
  EXPECT_EQ(point->cublaslt_best_us, 9.25);
  EXPECT_EQ(point->max_scaled_error, 0.01235);
  EXPECT_EQ(point->ties, table.points[0].ties);
  const TablePoint* none = find_point(back, packed_problem(5, 5, 5));
  ASSERT_TRUE(none);
  EXPECT_EQ(none->kernel, "");
  EXPECT_FALSE(none->cublaslt_best_us);
  const PortfolioKernel* kernel = back.find_kernel(table.points[0].kernel);
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->config, emulated_configs()[1]);
  EXPECT_EQ(kernel->model_factor, 1.25);
  EXPECT_TRUE(kernel->traits.empty());
  const PortfolioKernel* fitted = back.find_kernel(table.portfolio[1].id);
  ASSERT_TRUE(fitted);
  EXPECT_EQ(fitted->traits, table.portfolio[1].traits);
  ASSERT_TRUE(back.learned_model);
  EXPECT_EQ(back.learned_model->problems, 850);
  ASSERT_EQ(back.learned_model->networks.size(), 2u);
  const TimeNetwork &network = back.learned_model->networks[0], &written = table.learned_model->networks[0];
  EXPECT_EQ(network.problem, written.problem);
  EXPECT_EQ(network.choice, written.choice);
  EXPECT_EQ(network.second, written.second);
  EXPECT_EQ(network.second_bias, written.second_bias);
  EXPECT_EQ(network.last, written.last);
  EXPECT_EQ(network.last_bias, written.last_bias);
  EXPECT_EQ(network.cublas, written.cublas);
  EXPECT_FALSE(back.learned_model->networks[1].cublas);
  ASSERT_TRUE(back.certificate && back.certificate->box && !back.certificate->outside);
  EXPECT_EQ(back.certificate->box->problems, 200);
  EXPECT_EQ(back.certificate->box->of_best_p5, 0.88);
  EXPECT_EQ(back.certificate->box->worst_problem, table.certificate->box->worst_problem);
  EXPECT_EQ(back.certificate->box->over_cublas, 1.25);
  EXPECT_EQ(back.portfolio_curve, table.portfolio_curve);
  EXPECT_FALSE(back.portfolio[kernel == &back.portfolio[0] ? 1 : 0].model_factor);
}

TEST(Table, OrderDoesNotDependOnTheOrderOfTuning) {
  Table reversed = sample();
  std::reverse(reversed.points.begin(), reversed.points.end());
  std::reverse(reversed.portfolio.begin(), reversed.portfolio.end());
  EXPECT_EQ(to_json(reversed), to_json(sample()));
}

// What calibration wrote before there were networks.
TEST(Table, AnOlderCalibrationIsLeftOutWithAWarning) {
  Table table = sample();
  table.learned_model.reset();
  for (PortfolioKernel& kernel : table.portfolio) kernel.traits.clear();
  std::string text = to_json(table);
  text.insert(text.rfind('}'), ", \"calibration\": [], \"cublas_factors\": []");
  std::vector<std::string> warnings;
  const Table back = parse_table(text, &warnings).value_or_throw();
  EXPECT_EQ(back.points.size(), table.points.size());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("older form"), std::string::npos) << warnings[0];
}

// Tables before first layers had 64 numbers.
TEST(Table, AnOlderNetworkOf32IsTheSameWithZeros) {
  nlohmann::json older = nlohmann::json::parse(to_json(sample()));
  const auto cut = [](nlohmann::json& array) { array.erase(array.begin() + kOlderFirstLayer, array.end()); };
  for (nlohmann::json& network : older["learned_model"]["networks"]) {
    for (const char* name : {"problem", "choice"})
      for (nlohmann::json& layer : network[name]) cut(layer);
    cut(network["second"]);
    if (network.contains("cublas")) cut(network["cublas"]);
  }
  for (nlohmann::json& kernel : older["portfolio"])
    if (kernel.contains("traits"))
      for (nlohmann::json& layer : kernel["traits"]) cut(layer);
  std::vector<std::string> warnings;
  const Table back = parse_table(older.dump(), &warnings).value_or_throw();
  EXPECT_TRUE(warnings.empty()) << warnings[0];
  EXPECT_EQ(to_json(back), to_json(sample())) << "what the sample has lies within the first 32";
  for (const TimeNetwork& network : back.learned_model->networks) EXPECT_EQ(network.first_layer, kOlderFirstLayer);

  nlohmann::json mixed = older;
  for (nlohmann::json& kernel : mixed["portfolio"])
    if (kernel.contains("traits")) kernel["traits"][0] = std::vector<float>(kFirstLayer);
  EXPECT_TRUE(parse_table(mixed.dump(), &warnings).value_or_throw().learned_model);
  ASSERT_EQ(warnings.size(), 1u) << "traits are as long as their network's first layer";
  EXPECT_NE(warnings[0].find("an array of 32 numbers"), std::string::npos) << warnings[0];

  warnings.clear();
  older["learned_model"]["networks"][0]["second"].push_back(older["learned_model"]["networks"][0]["second_bias"]);
  EXPECT_FALSE(parse_table(older.dump(), &warnings).value_or_throw().learned_model) << "one length within a network";
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("an array of 32 arrays"), std::string::npos) << warnings[0];
}

TEST(Table, ANetworkOfAnotherSizeIsLeftOutWithAWarning) {
  std::string text = to_json(sample());
  const std::string row = "\"second_bias\": [0.0, ";
  ASSERT_NE(text.find(row), std::string::npos);
  text.replace(text.find(row), row.size(), "\"second_bias\": [");
  std::vector<std::string> warnings;
  const Table back = parse_table(text, &warnings).value_or_throw();
  EXPECT_FALSE(back.learned_model);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("second_bias"), std::string::npos) << warnings[0];
}

TEST(Table, TraitsForOtherNetworksAreToldOfAndThePointsUsed) {
  for (const size_t networks : {0, 1, 2, 3}) {
    Table table = sample();
    if (networks == 0)
      table.learned_model.reset();
    else
      table.learned_model->networks.resize(networks);
    for (PortfolioKernel& kernel : table.portfolio) kernel.traits.resize(2);
    std::vector<std::string> warnings;
    const Table back = parse_table(to_json(table), &warnings).value_or_throw();
    EXPECT_EQ(back.points.size(), table.points.size());
    EXPECT_EQ(warnings.size(), networks == 2 ? 0u : 1u);
    for (const std::string& warning : warnings) EXPECT_NE(warning.find("traits"), std::string::npos) << warning;
  }
}

TEST(Table, HasOneLineForEachKernelAndPoint) {
  std::istringstream text(to_json(sample()));
  int kernels = 0, points = 0;
  for (std::string line; std::getline(text, line);) {
    kernels += line.rfind("    {\"id\": ", 0) == 0 && line.find("\"threads\"") != std::string::npos;
    points += line.rfind("    {\"problem\": {\"m\": ", 0) == 0 && line.find("\"ties\"") != std::string::npos;
  }
  EXPECT_EQ(kernels, 2);
  EXPECT_EQ(points, 3);
}

TEST(Table, FindsTheSameSizesOpsAndBatchWhateverTheLeadingDimensions) {
  const Table table = sample();
  EXPECT_TRUE(find_point(table, with_ld(packed_problem(8, 4096, 512, Op::N, Op::T), 100, 5000, 9)));
  EXPECT_FALSE(find_point(table, packed_problem(8, 4096, 512, Op::N, Op::N)));
  EXPECT_FALSE(find_point(table, packed_problem(8, 4096, 512, Op::N, Op::T, 2)));
}

TEST(Table, MatchesByCapabilitySizeAndMemory) {
  const Table table = sample();
  const DeviceInfo own = table.device;
  const auto changed = [&](auto change) {
    DeviceInfo device = own;
    change(device);
    return match(table, device);
  };
  EXPECT_EQ(match(table, own), TableMatch::exact);
  EXPECT_EQ(changed([](DeviceInfo& d) { d.name = "the same chip under another name"; }), TableMatch::exact);
  EXPECT_EQ(changed([](DeviceInfo& d) { d.memory_bytes += d.memory_bytes / 30; }), TableMatch::exact);
  EXPECT_EQ(changed([](DeviceInfo& d) { d.memory_bytes += d.memory_bytes / 10; }), TableMatch::borrowed);
  EXPECT_EQ(changed([](DeviceInfo& d) { d.sm_count = 16; }), TableMatch::borrowed);
  EXPECT_EQ(changed([](DeviceInfo& d) { d.emulated = false; }), TableMatch::borrowed);
  EXPECT_EQ(changed([](DeviceInfo& d) { d.limits.compute_capability = 100; }), TableMatch::borrowed);
  EXPECT_EQ(changed([](DeviceInfo& d) { d.limits.compute_capability = 80; }), TableMatch::unusable);
}

TEST(Table, SavesAndReplacesAtomically) {
  const TemporaryFolder folder;
  const std::string path = folder.file("table.json");
  ASSERT_TRUE(save_table(sample(), path));
  Table other = sample();
  other.points.pop_back();
  ASSERT_TRUE(save_table(other, path));
  EXPECT_EQ(text_of(path), to_json(other));
  const std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "a temporary file is left";
}

TEST(Table, ReplacesWhatALinkLeadsToAndNoDevices) {
  const TemporaryFolder folder;
  const std::string path = folder.file("table.json"), link = folder.file("link.json"), pipe = folder.file("pipe");
  ASSERT_TRUE(save_table({}, path));
  std::filesystem::create_symlink("table.json", link);
  ASSERT_TRUE(save_table(sample(), link));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(text_of(path), to_json(sample()));
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const Result<bool> saved = save_table(sample(), pipe);
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().find("not a regular file"), std::string::npos) << saved.error();
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(Table, FailedSaveNamesPathAndReason) {
  const TemporaryFolder folder;
  const Result<bool> missing = save_table(sample(), folder.file("no/such/folder/table.json"));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().find("no/such/folder/table.json"), std::string::npos);
  EXPECT_NE(missing.error().find("No such file or directory"), std::string::npos);
  const Result<bool> onto_folder = save_table(sample(), folder.path());
  ASSERT_FALSE(onto_folder);
  EXPECT_NE(onto_folder.error().find("directory"), std::string::npos) << onto_folder.error();
  EXPECT_FALSE(std::filesystem::exists(folder.path() + ".tmp"));
}

TEST(Table, WithoutPermissionTheOldFileStays) {
  const TemporaryFolder folder;
  const std::string path = folder.file("table.json");
  ASSERT_TRUE(save_table(sample(), path));
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  const uid_t user = geteuid();
  const uid_t unprivileged = user == 0 ? 65534 : user;  // root may write everywhere, nobody may not
  ASSERT_EQ(seteuid(unprivileged), 0);
  const Result<bool> saved = save_table({}, path);
  ASSERT_EQ(seteuid(user), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().find("Permission denied"), std::string::npos) << saved.error();
  EXPECT_EQ(text_of(path), to_json(sample()));
}

TEST(Table, WithoutSpaceTheOldFileStays) {
  const TemporaryFolder folder;
  const std::string path = folder.file("table.json");
  ASSERT_TRUE(save_table(sample(), path));
  // A limit on the file size cuts the write as a full disk does.
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{512, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Result<bool> saved = save_table(sample(), path);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().find(path), std::string::npos);
  EXPECT_NE(saved.error().find("File too large"), std::string::npos) << saved.error();
  EXPECT_EQ(text_of(path), to_json(sample()));
  const std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "a temporary file is left";
}

}  // namespace
}  // namespace gemm::test
