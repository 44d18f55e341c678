// gemm-tune on GPU 0: two small shapes, a reduced space and a short calibration, from the command line to a measured table.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "dispatch/table.h"

namespace gemm {
namespace {

namespace fs = std::filesystem;

TEST(TunerOnGpu, TunesTwoSmallShapes) {
  std::string why;
  if (cuda_device_count(&why) == 0) GTEST_SKIP() << "no GPU: " << why;
  const fs::path folder = fs::path(testing::TempDir()) / "gpu_tuner_test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::ofstream(folder / "shapes.csv") << "m,n,k,transa,transb\n256,256,256,N,N\n513,16,2049,T,N\n";
  std::ofstream(folder / "space.json") << R"({"families": [{"name": "few", "BM": [32, 64], "BN": [16, 32], "BK": [32],
      "WM": [32], "WN": [16, 32], "WNITER": [1], "TM": [4], "TN": [4], "stages": [3], "slices": [2, 4], "min_blocks": [1],
      "load": ["async", "async_transpose"], "order": ["rows"], "acc_init": ["plain"]}]})";
  const std::string table_path = (folder / "table.json").string();
  const std::string command = GEMM_TOOLS_DIR "/gemm-tune --gpu 0 --no-default-shapes --calibration 40 --shapes " +
                              (folder / "shapes.csv").string() + " --space " + (folder / "space.json").string() + " -o " +
                              table_path;
  const int status = std::system(command.c_str());
  ASSERT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0) << command;

  std::vector<std::string> warnings;
  const Result<Table> table = load_table(table_path, &warnings);
  ASSERT_TRUE(table.ok()) << table.error();
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(table->provenance, "measured");
  ASSERT_EQ(table->points.size(), 2u);
  EXPECT_GE(table->portfolio.size(), 1u);
  for (const TablePoint& point : table->points) {
    EXPECT_NE(table->find_kernel(point.kernel), nullptr) << point.problem;
    EXPECT_GT(point.time_us.median, 1) << point.problem;
    EXPECT_LE(point.time_us.p20, point.time_us.p80);
    EXPECT_GE(point.time_us.n, 5);
    EXPECT_GT(point.max_scaled_error, 0) << "random data is never exact";
    EXPECT_LE(point.max_scaled_error, 1);
    ASSERT_TRUE(point.cublas_us) << "cuBLAS is part of the toolkit";
    EXPECT_GT(*point.cublas_us, 1);
    ASSERT_TRUE(point.cublaslt_best_us);
    EXPECT_LT(*point.cublaslt_best_us, 2 * *point.cublas_us);
  }
  for (const PortfolioKernel& kernel : table->portfolio) EXPECT_GT(kernel.registers, 16);
}

}  // namespace
}  // namespace gemm
