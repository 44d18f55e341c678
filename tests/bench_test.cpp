// gemm-bench without a GPU: what it chooses, verifies and reports.
#include "tuner/bench.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "command.h"
#include "dispatch_cases.h"
#include "emulator/emulated_device.h"
#include "kernels/kernel_spec.h"
#include "kernels/peaks.h"
#include "tuner/bench_ladder.h"
#include "tuner/bench_report.h"

namespace gemm {
namespace {

const Choice kChoice{emulated_configs()[2], 4, Reduction::ticket};

class BenchTest : public testing::Test {
 protected:
  void open(const EmulatorOptions& options = default_emulator_options()) {
    device_ = make_emulated_device(options);
    context_ = BenchContext::create(*device_, [this](const Choice& choice, const Problem& problem) {
                 return modelled_time_us(device_->info(), choice, problem);
               }).value_or_throw();
  }
  BenchRow run(const Table* table, const Problem& problem) {
    return Bench(*context_, table, measure_peaks(*device_).value_or_throw(), 3).run({"small", problem});
  }
  Table table(const Problem& problem) const { return test::table_of(device_->info(), kChoice, {problem}); }

  std::unique_ptr<Device> device_;
  std::unique_ptr<BenchContext> context_;
};

TEST_F(BenchTest, RunsTheTablesChoiceAndVerifiesIt) {
  open();
  const Problem problem = packed_problem(33, 20, int64_t{2} * kChoice.config.BK, Op::T, Op::N);
  const Table own = table(problem);
  const BenchRow row = run(&own, problem);
  EXPECT_EQ(row.failure, "");
  EXPECT_EQ(row.rule, Rule::exact);
  EXPECT_EQ(row.choice.config, kChoice.config);
  EXPECT_EQ(row.choice.split_k, 2) << "two stages leave two splits";
  ASSERT_TRUE(row.max_scaled_error.has_value());
  EXPECT_GT(*row.max_scaled_error, 0);
  EXPECT_LE(*row.max_scaled_error, 1);
  EXPECT_FALSE(row.cublas_us || row.cublaslt_best_us || row.speedup()) << "the emulated device has no baselines";
  EXPECT_DOUBLE_EQ(row.ours_us, modelled_time_us(device_->info(), row.choice, problem));
}

TEST_F(BenchTest, AnErrorIsTheFailureOfItsRow) {
  device_ = make_emulated_device();
  context_ = BenchContext::create(*device_, [](const Choice&, const Problem& problem) -> double {
               if (problem.m == 17) throw Error("the device lost its way");
               return 1;
             }).value_or_throw();
  const BenchRow failed = run(nullptr, packed_problem(17, 16, 16));
  EXPECT_EQ(failed.failure, "the device lost its way");
  EXPECT_FALSE(failed.wrong);
  EXPECT_EQ(run(nullptr, packed_problem(16, 16, 16)).failure, "");
}

TEST_F(BenchTest, ProblemsBeyond64BitsAreRowsToo) {
  open();
  const int64_t most = 2147483647, large = 1 << 20;
  Problem padded = packed_problem(4, most, 4, Op::N, Op::N, most);
  padded.ldc = most, padded.stride_c = most * most;
  for (const Problem& problem :
       {packed_problem(most, most, most), packed_problem(large, large, large, Op::N, Op::N, 16777216), padded})
    EXPECT_NE(run(nullptr, problem).failure.find("of GPU memory to verify and time"), std::string::npos) << problem;
}

TEST_F(BenchTest, WithoutATableDefaultKernelsServe) {
  open();
  const BenchRow row = run(nullptr, packed_problem(16, 16, 16));
  EXPECT_EQ(row.failure, "");
  EXPECT_EQ(row.rule, Rule::fallback);
}

TEST_F(BenchTest, ACublasPointIsServedByAnOwnKernelWhereCublasIsMissing) {
  open();
  const Problem problem = packed_problem(16, 16, 64);
  Table own = table(problem);
  own.points[0].use_cublas = true;
  const BenchRow row = run(&own, problem);
  EXPECT_EQ(row.failure, "");
  EXPECT_FALSE(row.use_cublas);
  EXPECT_EQ(row.choice.config, kChoice.config);
}

TEST_F(BenchTest, AWrongResultHasNoTime) {
  EmulatorOptions options = default_emulator_options();
  for (const FaultKind kind : {FaultKind::writes_nan, FaultKind::skips_last_tile}) {
    options.faults = {{"tile_", kind}};
    open(options);
    const BenchRow row = run(nullptr, packed_problem(40, 40, 16));
    EXPECT_TRUE(row.wrong);
    EXPECT_NE(row.failure.find("wrong result"), std::string::npos) << row.failure;
    EXPECT_EQ(bench_csv_row(row), "");
    EXPECT_NE(bench_summary({row}).find("1 shapes, 1 of them because of a wrong result"), std::string::npos);
  }
}

TEST_F(BenchTest, AShapeThatDoesNotFitIsSkippedWithTheReason) {
  open();
  const BenchRow row = run(nullptr, packed_problem(20000, 20000, 8));
  EXPECT_FALSE(row.wrong);
  EXPECT_NE(row.failure.find("MiB"), std::string::npos) << row.failure;
  EXPECT_NE(bench_table_row(row).find("skipped"), std::string::npos);
}

TEST_F(BenchTest, LadderNeedsAGpu) {
  open();
  const auto times = time_ladder(*context_, nullptr, 64, 3);
  ASSERT_FALSE(times.ok());
  EXPECT_NE(times.error().find("GPU"), std::string::npos);
}

TEST(BenchPeaks, FloorIsTheLargerOfArithmeticAndMemory) {
  const Peaks peaks{2e6, 4e3};
  EXPECT_DOUBLE_EQ(floor_us(peaks, packed_problem(100, 100, 1000)), std::max(2e7 / 2e6, 4 * 210000 / 4e3));
  EXPECT_DOUBLE_EQ(floor_us({2, 1e9}, packed_problem(2, 3, 4)), 24);
}

TEST(BenchPeaks, CopyCopiesExactlyItsBytes) {
  const auto device = make_emulated_device();
  const auto kernel = device->build(copy_peak_spec()).value_or_throw();
  for (const int64_t quads : {1, 255, 1024, 1500}) {
    std::vector<float> from(static_cast<size_t>(4 * quads)), to(from.size() + 4, -1);
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
    const Buffer source = device->allocate(from.size() * 4).value_or_throw();
    const Buffer target = device->allocate(to.size() * 4).value_or_throw();
    device->copy_to_device(source.as(), from.data(), from.size() * 4);
    device->copy_to_device(target.as(), to.data(), to.size() * 4);
    ASSERT_TRUE(launch_copy_peak(*device, *kernel, source.as<float>(), target.as<float>(), quads * 16, nullptr).ok());
    device->copy_to_host(to.data(), target.as(), to.size() * 4);
    from.insert(from.end(), 4, -1);
    EXPECT_EQ(to, from) << quads << " quads";
  }
}

TEST(BenchPeaks, FfmaChainsStayFiniteAndFillTheirOutput) {
  EmulatorOptions options = default_emulator_options();
  options.info.sm_count = 1;
  const auto device = make_emulated_device(options);
  const auto kernel = device->build(ffma_peak_spec()).value_or_throw();
  std::vector<float> sums(static_cast<size_t>(ffma_peak_threads(device->info())), NAN);
  const Buffer out = device->allocate(sums.size() * 4).value_or_throw();
  device->copy_to_device(out.as(), sums.data(), sums.size() * 4);
  ASSERT_TRUE(launch_ffma_peak(*device, *kernel, out.as<float>(), 2, nullptr).ok());
  device->copy_to_host(sums.data(), out.as(), sums.size() * 4);
  for (const float sum : sums) ASSERT_TRUE(std::isnormal(sum));
  EXPECT_DOUBLE_EQ(ffma_peak_flops(device->info(), 2), 2.0 * 2 * 16 * 16 * 2048);
}

BenchRow row_with(const std::string& shape_class, double ours, double cublas, double lt, bool use_cublas) {
  BenchRow row;
  row.shape = {shape_class, packed_problem(128, 16, 64, Op::T, Op::N)};
  row.rule = Rule::exact;
  row.use_cublas = use_cublas;
  row.choice = kChoice;
  row.ours_us = ours;
  row.cublas_us = cublas;
  row.cublaslt_best_us = lt;
  row.floor_us = 1;
  if (!use_cublas) row.max_scaled_error = 0.125;
  return row;
}

TEST(BenchReport, CsvHasTheAgreedColumns) {
  EXPECT_EQ(bench_csv_header(),
            "class,m,n,k,transa,transb,batch,lda,ldb,ldc,ours_us,cublas_us,cublaslt_best_us,floor_us,kernel,split_k,rule,"
            "max_scaled_error,reduction,relayout\n");
  EXPECT_EQ(bench_csv_row(row_with("skinny", 2, 5, 4, false)), "skinny,128,16,64,T,N,1,64,64,128,2.000,5.000,4.000,1.000," +
                                                                   config_id(kChoice.config) +
                                                                   ",4,exact,0.12500,ticket,none\n");
  EXPECT_EQ(bench_csv_row(row_with("", 2, 2, 2, true)),
            ",128,16,64,T,N,1,64,64,128,2.000,2.000,2.000,1.000,cublas,1,exact,,,\n");
  BenchRow emulated = row_with("skinny", 2, 5, 4, false);
  emulated.cublas_us = emulated.cublaslt_best_us = std::nullopt;
  EXPECT_NE(bench_csv_row(emulated).find(",2.000,,,1.000,"), std::string::npos);
}

TEST(BenchReport, MeansWorstAndShare) {
  const std::vector<BenchRow> rows = {row_with("a", 2, 5, 4, false), row_with("a", 8, 16, 16, false),
                                      row_with("b", 4, 3, 1, true), row_with("b", 4, 4, 4, false)};
  const std::string text = bench_summary(rows);
  EXPECT_NE(text.find("a                 2      2.000        2.236        4.000\n"), std::string::npos) << text;
  EXPECT_NE(text.find("b                 2      0.500        0.866        4.000\n"), std::string::npos) << text;
  EXPECT_NE(text.find("all               4      1.000        1.392        4.000\n"), std::string::npos) << text;
  EXPECT_NE(text.find("worst shape: 128x16x64 TN at 0.250"), std::string::npos) << text;
  EXPECT_NE(text.find("own kernels: 3 of 4 shapes (75 %)"), std::string::npos) << text;
}

TEST(BenchTable, NamedThenEnvironmentThenFolders) {
  const test::TemporaryFolder folder;
  const auto device = make_emulated_device();
  const DeviceInfo& info = device->info();
  const Table table = test::table_of(info, kChoice, {packed_problem(8, 8, 8)});
  save_table(table, folder.file(info.slug() + ".json")).value_or_throw();
  save_table(table, folder.file("other.json")).value_or_throw();
  std::vector<std::string> warnings;
  const auto find = [&](const std::string& path, const std::vector<std::string>& folders) {
    return bench_table(path, folders, info, &warnings);
  };
  ASSERT_EQ(unsetenv("GEMM_TABLE"), 0);
  EXPECT_FALSE(find("", {}).value_or_throw().has_value());
  EXPECT_EQ(find("", {folder.path()}).value_or_throw()->path, folder.file(info.slug() + ".json"));
  ASSERT_EQ(setenv("GEMM_TABLE", folder.file("other.json").c_str(), 1), 0);
  EXPECT_EQ(find("", {folder.path()}).value_or_throw()->path, folder.file("other.json"));
  EXPECT_FALSE(find(folder.file("missing.json"), {}).ok());
  ASSERT_EQ(unsetenv("GEMM_TABLE"), 0);
  DeviceInfo older = info;
  older.limits.compute_capability = 80;
  const auto refused = bench_table(folder.file("other.json"), {}, older, &warnings);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().find("newer"), std::string::npos) << refused.error();
}

// The program itself.
class BenchProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::ifstream(program_)) GTEST_SKIP() << program_ << " was not built";
    std::ofstream(folder_.file("shapes.csv"))
        << "class,m,n,k,transa,transb,batch,lda,ldb\nsmall,33,17,40,N,T,1,0,\nbatched,8,8,8,N,N,3,9,8\n";
    save_table(test::table_of(default_emulator_options().info, {emulated_configs()[2]}, {}), folder_.file("t.json"))
        .value_or_throw();
    std::ofstream(folder_.file("bad.csv")) << "m,n,k,transa,transb\n1,2,x,N,N\n";
  }
  test::CommandResult run(const std::string& arguments) const {
    return test::run_command("cd '" + folder_.path() + "' && '" + program_ + "' " + arguments);
  }
  const std::string program_ = std::string(GEMM_TOOLS_DIR) + "/gemm-bench";
  test::TemporaryFolder folder_;
};

TEST_F(BenchProgram, EmulatedRunWritesTheCsv) {
  const test::CommandResult result = run("--emulated --shapes shapes.csv --csv out.csv --rounds 3");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("modelled"), std::string::npos) << result.output;
  std::stringstream csv;
  csv << std::ifstream(folder_.file("out.csv")).rdbuf();
  const std::string text = csv.str();
  EXPECT_EQ(text.rfind(bench_csv_header() + "small,33,17,40,N,T,1,33,17,33,", 0), 0u) << text;
  EXPECT_NE(text.find("\nbatched,8,8,8,N,N,3,9,8,8,"), std::string::npos) << text;
  EXPECT_NE(result.output.find(")  ld 9,8,8\n"), std::string::npos) << result.output;
  EXPECT_EQ(result.output.find("  ld 33"), std::string::npos) << "packed problems are not marked\n" << result.output;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
}

TEST_F(BenchProgram, BadInputEndsWithAMessageAndTheRightStatus) {
  struct Case {
    const char* arguments;
    int exit_code;
    const char* message;
  };
  for (const Case& c : {Case{"--help", 0, "--shapes"},
                        Case{"--version", 0, "0."},
                        {"", 2, "--shapes FILE or --ladder"},
                        {"--emulated --ladder --csv out.csv", 2, "--csv"},
                        {"--gpu -1 --shapes shapes.csv", 2, "--gpu"},
                        {"--shapes shapes.csv --rounds 0", 2, "--rounds"},
                        {"--nonsense", 2, "--nonsense"},
                        {"--gpu 999 --shapes shapes.csv", 1, "gemm-bench: "},
                        {"--emulated --shapes missing.csv", 1, "missing.csv"},
                        {"--emulated --shapes bad.csv", 1, "line 2"},
                        {"--emulated --shapes shapes.csv --csv no/such/folder.csv", 1, "no/such/folder.csv"},
                        {"--emulated --shapes shapes.csv --table missing.json", 1, "missing.json"},
                        {"--emulated --shapes shapes.csv --csv ./shapes.csv", 2, "overwrite the shapes"},
                        {"--emulated --shapes shapes.csv --table t.json --csv ./t.json", 1, "overwrite the table"},
                        {"--emulated --ladder", 1, "needs a GPU"}}) {
    const test::CommandResult result = run(c.arguments);
    EXPECT_EQ(result.exit_code, c.exit_code) << c.arguments << "\n" << result.output;
    EXPECT_NE(result.output.find(c.message), std::string::npos) << c.arguments << "\n" << result.output;
  }
}

TEST_F(BenchProgram, AWrongKernelFailsTheRun) {
  const test::CommandResult result =
      test::run_command("cd '" + folder_.path() + "' && GEMM_EMULATOR_FAULTS=tile_=writes_nan '" + program_ +
                        "' --emulated --shapes shapes.csv");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find("wrong result"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace gemm
