// What a context writes down for people: GEMM_RECORD and GEMM_LOG.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "scripted_context.h"

namespace gemm::test {
namespace {

TEST(Record, HoldsEachUntunedShapeOnce) {
  const TemporaryFolder folder;
  const std::string path = folder.file("shapes.csv");
  const Environment variable("GEMM_RECORD", path);
  for (int process = 0; process < 2; ++process) {
    Scripted scripted;
    force_split(scripted);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(scripted.multiply(kSplit), GEMM_SUCCESS);
      ASSERT_EQ(scripted.multiply(packed_problem(5, 6, 7, Op::T, Op::N)), GEMM_SUCCESS);
      ASSERT_EQ(scripted.multiply(with_ld(packed_problem(5, 6, 7, Op::N, Op::T, 3), 8, 9, 10)), GEMM_SUCCESS);
      ASSERT_EQ(scripted.multiply(packed_problem(5, 6, 0)), GEMM_SUCCESS);
    }
  }
  EXPECT_EQ(text_of(path), "m,n,k,transa,transb,batch,lda,ldb,ldc\n5,6,7,T,N,1,7,7,5\n5,6,7,N,T,3,8,9,10\n");
}

TEST(Record, LeavesOutWhatGemmTuneWouldRefuse) {
  const TemporaryFolder folder;
  const std::string path = folder.file("shapes.csv");
  const Environment variable("GEMM_RECORD", path);
  const Scripted scripted;
  for (const int64_t ldc : {int64_t{1} << 31, (int64_t{1} << 31) - 1})
    ASSERT_EQ(scripted.multiply(with_ld(packed_problem(5, 1, 7), 5, 7, ldc)), GEMM_SUCCESS) << gemm_last_error();
  EXPECT_EQ(text_of(path), "m,n,k,transa,transb,batch,lda,ldb,ldc\n5,1,7,N,N,1,5,7,2147483647\n");
}

TEST(Record, DropsWhatAKilledProcessLeftOfALine) {
  const TemporaryFolder folder;
  const std::string path = folder.file("shapes.csv"), header = std::string(ShapeRecord::kHeader) + "\n";
  for (const std::string& left : {std::string("m,n,k,tra"), header + "2,2", header + "1,1,1,N,N,1,1,1,1\n7"}) {
    std::ofstream(path) << left;
    ASSERT_TRUE(ShapeRecord(path).add(packed_problem(1, 1, 1)).ok());
    EXPECT_EQ(text_of(path), header + "1,1,1,N,N,1,1,1,1\n") << left;
  }
}

TEST(Record, SeveralProcessesWriteOneFile) {
  const TemporaryFolder folder;
  const std::string path = folder.file("shapes.csv");
  std::ofstream(path) << ShapeRecord::kHeader << "\n1,1,1,N,N,1,1,1,1\n2,2";  // another one was killed in mid-write
  std::vector<pid_t> children;
  for (int child = 0; child < 3; ++child) {
    const pid_t pid = fork();
    if (pid == 0) {
      ShapeRecord record(path);
      bool good = true;
      for (int64_t m = 1; m <= 50; ++m) good = good && record.add(packed_problem(m, 1, 1)).ok();
      _exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::istringstream text(text_of(path));
  std::multiset<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.insert(line);
  EXPECT_EQ(lines.size(), 1u + 50);
  EXPECT_EQ(lines.count("1,1,1,N,N,1,1,1,1"), 1u);
  for (int64_t m = 2; m <= 50; ++m) {
    std::ostringstream line;
    line << m << ",1,1,N,N,1," << m << ",1," << m;
    EXPECT_EQ(lines.count(line.str()), 1u) << m;
  }
}

TEST(Record, IsBoundedAndLeavesOtherFilesAlone) {
  const TemporaryFolder folder;
  {
    ShapeRecord record(folder.file("many.csv"));
    for (size_t m = 1; m <= ShapeRecord::kMaxLines + 5; ++m)
      ASSERT_TRUE(record.add(packed_problem(static_cast<int64_t>(m), 1, 1)).ok());
  }
  std::istringstream text(text_of(folder.file("many.csv")));
  size_t lines = 0;
  for (std::string line; std::getline(text, line);) ++lines;
  EXPECT_EQ(lines, ShapeRecord::kMaxLines + 1);

  std::ofstream(folder.file("letter.txt")) << "Dear reader,\n";
  for (const std::string& path : {folder.file("letter.txt"), folder.path(), std::string("/nowhere/shapes.csv")}) {
    const Environment variable("GEMM_RECORD", path);
    Scripted scripted;
    for (int64_t m = 1; m <= 2; ++m) EXPECT_EQ(scripted.multiply(packed_problem(m, 1, 1)), GEMM_SUCCESS);
    ASSERT_EQ(scripted.warnings.size(), 1u) << path;
    EXPECT_NE(scripted.warnings[0].find(path), std::string::npos) << scripted.warnings[0];
  }
  EXPECT_EQ(text_of(folder.file("letter.txt")), "Dear reader,\n");
}

TEST(Logging, LevelsDecideWhatIsSaid) {
  for (const auto& [level, news] : {std::pair{LogLevel::off, 0u}, {LogLevel::warn, 0u}, {LogLevel::info, 1u}}) {
    Scripted scripted(false, default_emulator_options(), level);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(scripted.multiply(packed_problem(5, 6, 7)), GEMM_SUCCESS);
    ASSERT_EQ(scripted.news.size(), news);
    if (news > 0) {
      EXPECT_NE(scripted.news[0].find("5x6x7 NN: default: tile_"), std::string::npos) << scripted.news[0];
    }
  }
  std::string complaint;
  {
    const Environment variable("GEMM_LOG", "debug");
    EXPECT_EQ(log_level_from_environment(&complaint), LogLevel::debug);
    EXPECT_EQ(complaint, "");
  }
  const Environment variable("GEMM_LOG", "loud");
  EXPECT_EQ(log_level_from_environment(&complaint), LogLevel::warn);
  EXPECT_NE(complaint.find("loud"), std::string::npos);
}

}  // namespace
}  // namespace gemm::test
