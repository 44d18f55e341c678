// Reading back what gemm-bench wrote.
#include "tuner/bench_csv.h"

#include <gtest/gtest.h>

#include <fstream>

#include "dispatch_cases.h"
#include "tuner/bench_report.h"

namespace gemm {
namespace {

class BenchCsv : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    std::ofstream(folder_.file("bench.csv")) << text;
    return folder_.file("bench.csv");
  }
  test::TemporaryFolder folder_;
};

BenchRow own_row() {
  BenchRow row;
  row.shape = {"skinny", packed_problem(128, 16, 64, Op::T, Op::N, 3)};
  row.shape.problem.lda = 70, row.shape.problem.stride_a = 70 * 128;
  row.rule = Rule::predicted;
  row.choice = {emulated_configs()[2], 4, Reduction::kernel, Relayout::b};
  row.ours_us = 2.5, row.cublas_us = 5, row.cublaslt_best_us = 4, row.floor_us = 1.25;
  row.max_scaled_error = 0.125;
  return row;
}

BenchRow cublas_row() {
  BenchRow row;
  row.shape = {"", packed_problem(7, 8, 9)};
  row.rule = Rule::cublas;
  row.use_cublas = true;
  row.ours_us = 2, row.floor_us = 0;
  return row;
}

TEST_F(BenchCsv, EveryColumnComesBack) {
  const std::vector<BenchRow> rows = {own_row(), cublas_row()};
  std::string text = bench_csv_header();
  for (const BenchRow& row : rows) text += bench_csv_row(row);
  const std::vector<BenchRow> read = read_bench_csv(write(text)).value_or_throw();
  ASSERT_EQ(read.size(), rows.size());
  EXPECT_EQ(read[0].shape.problem, rows[0].shape.problem);
  EXPECT_EQ(read[0].shape.shape_class, "skinny");
  EXPECT_FALSE(read[1].cublas_us || read[1].cublaslt_best_us || read[1].max_scaled_error);
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(bench_csv_row(read[i]), bench_csv_row(rows[i]));
}

TEST_F(BenchCsv, AClassMayHoldCommasAndQuotes) {
  BenchRow row = own_row();
  row.shape.shape_class = "up, \"gate\"";
  const std::vector<BenchRow> read = read_bench_csv(write(bench_csv_header() + bench_csv_row(row))).value_or_throw();
  EXPECT_EQ(read[0].shape.shape_class, row.shape.shape_class);
}

TEST_F(BenchCsv, ReadsTheFilesOfThisRepositoryAndOlderForms) {
  for (const char* name : {"performance.csv", "performance_random.csv", "performance_padded.csv"}) {
    const auto rows = read_bench_csv(std::string(GEMM_SOURCE_DIR) + "/docs/" + name);
    ASSERT_TRUE(rows.ok()) << rows.error();
    EXPECT_GT(rows->size(), 30u);
    for (const BenchRow& row : *rows) EXPECT_TRUE(row.speedup()) << name;
  }
  const auto older = read_bench_csv(
      write("class,m,n,k,transa,transb,batch,ours_us,cublas_us,cublaslt_best_us,floor_us,kernel,split_k,rule\n"
            "a,1,2,3,N,T,1,2,,3,1,cublas,1,nearest\n"));
  ASSERT_TRUE(older.ok()) << older.error();
  EXPECT_EQ(older->front().shape.problem, packed_problem(1, 2, 3, Op::N, Op::T));
  EXPECT_EQ(older->front().speedup(), 1.5);
}

TEST_F(BenchCsv, ErrorsNameLineAndColumn) {
  const std::string header = bench_csv_header(), good = bench_csv_row(own_row());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string row = good;
    return header + row.replace(row.find(from), from.size(), to);
  };
  const struct {
    std::string text;
    std::vector<std::string> expected;
  } cases[] = {{"", {"empty", "gemm-bench --csv"}},
               {header, {"no shapes"}},
               {"m,n,k,transa,transb\n1,1,1,N,N\n", {"line 1", "no column 'class'"}},
               {"{\n  \"version\": 1\n}\n", {"line 1", "no column"}},
               {header + "a,b\n", {"line 2", "2 fields"}},
               {header + good + with("2.500", "nan").substr(header.size()), {"line 3", "'ours_us' is 'nan'", "above 0"}},
               {with("2.500", "inf"), {"line 2", "'ours_us' is 'inf'"}},
               {with("2.500", "0"), {"line 2", "'ours_us' is '0'"}},
               {with("2.500", ""), {"line 2", "'ours_us' is empty"}},
               {with("5.000", "-5"), {"line 2", "'cublas_us' is '-5'"}},
               {with("1.250", "1e999"), {"line 2", "'floor_us'"}},
               {with("0.12500", "x"), {"line 2", "'max_scaled_error' is 'x'", "from 0"}},
               {with("predicted", "guessed"), {"line 2", "'rule' is 'guessed'"}},
               {with("tile_", "<b>_"), {"line 2", "'kernel' is '<b>_"}},
               {with(",4,predicted", ",0,predicted"), {"line 2", "'split_k' is '0'"}},
               {with(",kernel,b", ",atomic,b"), {"line 2", "'reduction' is 'atomic'"}},
               {with(",kernel,b", ",kernel,c"), {"line 2", "'relayout' is 'c'"}},
               {with(",T,N,", ",X,N,"), {"line 2", "'transa' is 'X'"}}};
  for (const auto& c : cases) {
    const auto rows = read_bench_csv(write(c.text));
    ASSERT_FALSE(rows.ok()) << c.text;
    EXPECT_NE(rows.error().find("bench.csv"), std::string::npos) << rows.error();
    for (const std::string& part : c.expected) EXPECT_NE(rows.error().find(part), std::string::npos) << rows.error();
  }
  EXPECT_NE(read_bench_csv("/nowhere/at-all.csv").error().find("No such file"), std::string::npos);
  EXPECT_FALSE(read_bench_csv(folder_.path()).ok());
}

}  // namespace
}  // namespace gemm
