// gemm-inspect: occupancy, reports and the program.
#include "tuner/inspect_report.h"

#include <gtest/gtest.h>

#include <fstream>

#include "command.h"
#include "dispatch_cases.h"
#include "emulator/emulated_device.h"
#include "kernels/kernel_spec.h"

namespace gemm {
namespace {

TEST(Occupancy, IsTheTightestOfTheLimits) {
  const DeviceLimits a6000{86, 101376, 102400, 65536, 1536};
  struct Case {
    const char* what;
    int registers, shared_bytes, threads;
    double occupancy;
  };
  for (const Case& c : {Case{"threads and registers: the worklog's rung 3", 37, 8192, 1024, 32.0 / 48},
                        {"threads alone", 32, 0, 256, 1},
                        {"registers: 128 * 256 is half of the file", 128, 1024, 256, 16.0 / 48},
                        {"registers in units of 256 per warp: 33 count as 40", 33, 0, 1024, 32.0 / 48},
                        {"shared memory: 1 KB more per block", 32, 50 * 1024 - 1024, 128, 8.0 / 48},
                        {"shared memory: one byte too much", 32, 50 * 1024 - 1023, 128, 4.0 / 48},
                        {"blocks: 16 at most", 32, 0, 32, 16.0 / 48},
                        {"does not fit at all", 255, 0, 1024, 0},
                        {"unknown registers", 0, 0, 256, 0}}) {
    PortfolioKernel kernel;
    kernel.registers = c.registers, kernel.shared_bytes = c.shared_bytes, kernel.threads = c.threads;
    EXPECT_DOUBLE_EQ(occupancy(kernel, a6000), c.occupancy) << c.what;
  }
}

TEST(ShapeText, IsReadOrRefusedWithTheReason) {
  EXPECT_EQ(problem_from_text("4096,16,2048").value_or_throw(), packed_problem(4096, 16, 2048));
  EXPECT_EQ(problem_from_text("1,2,3,TN").value_or_throw(), packed_problem(1, 2, 3, Op::T, Op::N));
  EXPECT_EQ(problem_from_text("1,2,3,nt,7").value_or_throw(), packed_problem(1, 2, 3, Op::N, Op::T, 7));
  for (const char* text : {"", "1", "1,2", "1,2,3,", "1,2,3,NN,", "1,2,3,NN,1,1", "1,2,x", "1,2,3x", "0,1,1", "-1,1,1",
                           "1,2,3,XN", "1,2,3,N", "1,2,99999999999", "1,2,3,NN,0"}) {
    const Result<Problem> problem = problem_from_text(text);
    ASSERT_FALSE(problem.ok()) << text;
    EXPECT_NE(problem.error().find("shape '"), std::string::npos);
  }
}

const Choice kChoice{emulated_configs()[2], 4, Reduction::kernel};

Table sample_table() {
  Table table = test::table_of(default_emulator_options().info, kChoice,
                               {packed_problem(256, 256, 256), packed_problem(64, 64, 4096, Op::T, Op::N)});
  table.environment = {{"driver", "580.1"}, {"date", "2026-11-29"}};
  table.portfolio[0].registers = 64;
  table.portfolio[0].shared_bytes = 1024;
  table.points[0].cublas_us = 15;
  table.points[0].cublaslt_best_us = 12.5;
  table.points[1].use_cublas = true;
  return table;
}

TEST(Inspect, SaysWhatTheTableHolds) {
  const Table table = sample_table();
  const std::string header = inspect_header(table);
  for (const char* part :
       {"Emulated GPU", "modelled: the times are a model's", "580.1", "2026-11-29", "2 points, 1 kernels"})
    EXPECT_NE(header.find(part), std::string::npos) << part << "\n" << header;
  const std::string portfolio = inspect_portfolio(table);
  EXPECT_NE(
      portfolio.find(kChoice.config.threads() == 128 ? "     1     64     1024     128" : "     1     64     1024      64"),
      std::string::npos)
      << "one point uses it, since the other one uses cuBLAS\n"
      << portfolio;
  const std::string points = inspect_points(table);
  EXPECT_NE(points.find("1.250  " + config_id(kChoice.config) + "/split 4 kernel"), std::string::npos) << points;
  EXPECT_NE(points.find("-  cublas"), std::string::npos) << points;
}

TEST(Inspect, ExplainsAShape) {
  const Table table = sample_table();
  const std::string exact = inspect_shape(table, "t.json", packed_problem(256, 256, 256));
  EXPECT_NE(exact.find("exact"), std::string::npos) << exact;
  EXPECT_NE(exact.find(config_id(kChoice.config)), std::string::npos) << exact;
  const std::string near = inspect_shape(table, "t.json", packed_problem(512, 256, 256));
  for (const char* part : {"nearest, 1.00 octaves from 256x256x256 NN", "considered", "t.json"})
    EXPECT_NE(near.find(part), std::string::npos) << part << "\n" << near;
}

TEST(InspectProgram, ShowsExplainsAndRefuses) {
  const std::string program = std::string(GEMM_TOOLS_DIR) + "/gemm-inspect";
  if (!std::ifstream(program)) GTEST_SKIP() << program << " was not built";
  const test::TemporaryFolder folder;
  save_table(sample_table(), folder.file("t.json")).value_or_throw();
  std::ofstream(folder.file("broken.json")) << "{";
  struct Case {
    const char* arguments;
    int exit_code;
    const char* message;
  };
  for (const Case& c : {Case{"--help", 0, "--shape"},
                        Case{"--version", 0, "0."},
                        {"t.json", 0, "1.250"},
                        {"t.json --shape 256,256,256", 0, "exact"},
                        {"t.json --shape 256,256", 2, "shape '256,256'"},
                        {"", 2, "table"},
                        {"t.json --nonsense", 2, "--nonsense"},
                        {"missing.json", 1, "missing.json"},
                        {"broken.json", 1, "broken.json"}}) {
    const test::CommandResult result = test::run_command("cd '" + folder.path() + "' && '" + program + "' " + c.arguments);
    EXPECT_EQ(result.exit_code, c.exit_code) << c.arguments << "\n" << result.output;
    EXPECT_NE(result.output.find(c.message), std::string::npos) << c.arguments << "\n" << result.output;
  }
}

}  // namespace
}  // namespace gemm
