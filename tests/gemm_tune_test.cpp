// The real gemm-tune, from its command line to the table, on the emulated device.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "dispatch/table.h"
#include "emulator/emulated_device.h"
#include "kernels/kernel_spec.h"
#include "tuner/json_forms.h"

namespace gemm {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

struct Ended {
  int status = -1;  // exit status, or -signal
  std::string output;
};

class GemmTune : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("gemm_tune_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    table_ = (folder_ / "t.json").string();
    write("small.csv", "m,n,k,transa,transb\n40,24,20,N,N\n");
    write("two.csv", "m,n,k,transa,transb\n40,24,20,N,N\n18,18,40,T,N\n");
    // Two of the emulator's kernels, which keeps the tests fast; the smaller one is the faster by the model.
    Json space;
    space["extra"] = {to_json(small()), to_json(large())};
    write("space.json", space.dump());
  }

  static KernelConfig emulated(int BM, int BN) {
    for (const KernelConfig& config : emulated_configs())
      if (config.BM == BM && config.BN == BN) return config;
    throw Error("the emulator has no such tile");
  }
  // A space whose only configuration cannot run anywhere.
  static std::string unusable_space() {
    KernelConfig config = emulated_configs().front();
    config.BM = 7;
    Json space;
    space["extra"] = {to_json(config)};
    return space.dump();
  }
  static KernelConfig small() { return emulated(16, 16); }
  static KernelConfig large() { return emulated(32, 32); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  static std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  // Arguments of a quick run on the emulated device, with more behind them.
  std::vector<std::string> quick(const std::string& shapes, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {
        "--emulated", "--no-default-shapes", "--shapes", file(shapes), "--space", file("space.json"), "-o",
        table_,       "--calibration",       "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  pid_t start(std::vector<std::string> arguments, const std::string& faults = "") {
    arguments.insert(arguments.begin(), GEMM_TOOLS_DIR "/gemm-tune");
    output_ = file("output-" + std::to_string(++runs_));
    const pid_t pid = fork();
    if (pid != 0) return pid;
    const int out = open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(out, 1);
    dup2(out, 2);
    setenv("GEMM_EMULATOR_FAULTS", faults.c_str(), 1);
    if (chdir(folder_.c_str()) != 0) _exit(126);
    std::vector<char*> words;
    words.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    execv(words[0], words.data());
    _exit(127);
  }

  Ended wait_for(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read(output_)};
  }

  Ended run(std::vector<std::string> arguments, const std::string& faults = "") {
    return wait_for(start(std::move(arguments), faults));
  }

  std::vector<std::string> log_lines() const {
    std::vector<std::string> lines;
    std::ifstream log(folder_ / "t.jsonl");
    for (std::string line; std::getline(log, line);) lines.push_back(line);
    return lines;
  }
  // Lines of the log that contain all of these.
  size_t count_lines(const std::vector<std::string>& parts) const {
    size_t count = 0;
    for (const std::string& line : log_lines()) {
      bool all = true;
      for (const std::string& part : parts) all = all && line.find(part) != std::string::npos;
      count += all;
    }
    return count;
  }
  // Waits until the log has so many lines.
  void wait_for_lines(size_t lines) {
    for (int i = 0; i < 3000 && log_lines().size() < lines; ++i) std::this_thread::sleep_for(milliseconds(10));
    ASSERT_GE(log_lines().size(), lines);
  }

  Table table() {
    std::vector<std::string> warnings;
    Result<Table> loaded = load_table(table_, &warnings);
    EXPECT_TRUE(loaded.ok()) << loaded.error();
    EXPECT_TRUE(warnings.empty());
    return loaded.ok() ? *loaded : Table{};
  }

  // Screened trials, each with problem and choice: none may be measured twice.
  void expect_no_trial_twice() {
    std::set<std::string> seen;
    for (const std::string& line : log_lines()) {
      if (line.find("\"stage\":\"screen\"") == std::string::npos) continue;
      const size_t begin = line.find("\"problem\"");
      EXPECT_TRUE(seen.insert(line.substr(begin, line.find("\"objectives\"") - begin)).second) << line;
    }
  }

  fs::path folder_;
  std::string table_, output_;
  int runs_ = 0;
};

TEST_F(GemmTune, WritesATableOfModelledPoints) {
  const Ended ended = run(quick("two.csv"));
  ASSERT_EQ(ended.status, 0) << ended.output;
  const Table found = table();
  EXPECT_EQ(found.provenance, "modelled");
  ASSERT_EQ(found.points.size(), 2u);
  EXPECT_GE(found.portfolio.size(), 1u);
  for (const TablePoint& point : found.points) {
    EXPECT_FALSE(point.use_cublas);
    EXPECT_GT(point.time_us.median, 0);
    EXPECT_LE(point.max_scaled_error, 1);
    EXPECT_FALSE(point.cublas_us);
    EXPECT_NE(found.find_kernel(point.kernel), nullptr);
  }
  EXPECT_NE(ended.output.find(table_), std::string::npos) << ended.output;
}

TEST_F(GemmTune, TuningTwiceGivesTheSameTable) {
  ASSERT_EQ(run(quick("two.csv")).status, 0);
  const Table first = table();
  ASSERT_EQ(run(quick("two.csv", {"--fresh"})).status, 0);
  const Table second = table();
  ASSERT_EQ(first.points.size(), second.points.size());
  for (size_t i = 0; i < first.points.size(); ++i) {
    EXPECT_EQ(first.points[i].kernel, second.points[i].kernel);
    EXPECT_EQ(first.points[i].split_k, second.points[i].split_k);
  }
  EXPECT_TRUE(fs::exists(table_ + "l.old-1")) << "the old log is kept";
}

TEST_F(GemmTune, FitsAndJudgesTheSelectorOnRandomProblems) {
  std::vector<std::string> arguments = quick("small.csv");
  arguments.back() = "5";
  const Ended ended = run(arguments);
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_NE(ended.output.find("untuned problems (box)"), std::string::npos) << ended.output;
  const Table first = table();
  ASSERT_EQ(first.points.size(), 1u) << "random problems are no points";
  ASSERT_TRUE(first.certificate && first.certificate->box);
  EXPECT_GT(first.certificate->box->of_best, 0.5);
  EXPECT_LE(first.certificate->box->of_best, 1);
  EXPECT_FALSE(first.certificate->box->over_cublas) << "there is no cuBLAS here";
  ASSERT_TRUE(first.learned_model);
  EXPECT_GE(first.learned_model->problems, 1);
  EXPECT_EQ(first.portfolio_curve.size(), first.portfolio.size());
  for (const PortfolioKernel& kernel : first.portfolio)
    EXPECT_EQ(kernel.traits.size(), first.learned_model->networks.size()) << kernel.id;
  // The same again, and calibration alone, find everything in the log.
  const size_t lines = log_lines().size();
  ASSERT_EQ(run(arguments).status, 0);
  EXPECT_EQ(log_lines().size(), lines);
  const Ended alone =
      run({"--emulated", "--no-default-shapes", "-o", table_, "--space", file("space.json"), "--calibration", "5"});
  ASSERT_EQ(alone.status, 0) << alone.output;
  EXPECT_EQ(log_lines().size(), lines);
  EXPECT_EQ(table().points.size(), 1u);
}

TEST_F(GemmTune, AFinishedRunHasNothingToDo) {
  ASSERT_EQ(run(quick("small.csv")).status, 0);
  const size_t lines = log_lines().size();
  const Ended again = run(quick("small.csv"));
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(log_lines().size(), lines);
  EXPECT_NE(again.output.find("1 of 1 shapes are done already"), std::string::npos) << again.output;
}

TEST_F(GemmTune, InterruptsKeepFinishedWorkAndResume) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) {
    SetUp();
    const pid_t pid = start(quick("two.csv"));
    wait_for_lines(4);
    kill(pid, signal);
    const Ended stopped = wait_for(pid);
    EXPECT_EQ(stopped.status, signal == SIGKILL ? -SIGKILL : 128 + signal) << stopped.output;
    if (signal != SIGKILL) table();  // is there and valid
    const size_t before = log_lines().size();
    EXPECT_GE(before, 4u);
    const Ended resumed = run(quick("two.csv"));
    ASSERT_EQ(resumed.status, 0) << resumed.output;
    EXPECT_GT(log_lines().size(), before);
    EXPECT_EQ(table().points.size(), 2u);
    expect_no_trial_twice();
  }
}

TEST_F(GemmTune, FaultyCandidatesCostOnlyThemselves) {
  const struct {
    const char* kind;
    const char* invalidity;
  } cases[] = {{"launch_refused", "runtime"},
               {"hang", "timeout"},
               {"crash", "runtime"},
               {"writes_nan", "correctness"},
               {"skips_last_tile", "correctness"}};
  for (const auto& c : cases) {
    SetUp();
    const Ended ended = run(quick("small.csv", {"--timeout", "2"}), config_id(small()) + "=" + c.kind);
    ASSERT_EQ(ended.status, 0) << c.kind << ": " << ended.output;
    EXPECT_GE(count_lines({std::string("\"invalidity\":\"") + c.invalidity, config_id(small())}), 1u) << c.kind;
    EXPECT_EQ(count_lines({"\"invalidity\":\"correct\"", config_id(small())}), 0u) << c.kind;
    const Table found = table();
    ASSERT_EQ(found.points.size(), 1u) << c.kind;
    EXPECT_EQ(found.points[0].kernel, config_id(large())) << c.kind;
  }
}

TEST_F(GemmTune, WhereNoKernelIsRightItSaysSo) {
  const Ended ended = run(quick("small.csv"), "tile_=writes_nan");
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_NE(ended.output.find("skipped 40x24x20 NN: no kernel was right"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("1 shapes were skipped"), std::string::npos) << ended.output;
  EXPECT_TRUE(table().points.empty());
  const Ended again = run(quick("small.csv"));
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_EQ(table().points.size(), 1u) << "skipped shapes are tried again";
}

TEST_F(GemmTune, ASecondTunerOnTheSameTableSaysSo) {
  const pid_t first = start(quick("small.csv", {"--timeout", "60"}), "tile_=hang");
  const std::string first_output = output_;
  wait_for_lines(1);
  const Ended second = run(quick("small.csv"));
  EXPECT_EQ(second.status, 1);
  EXPECT_NE(second.output.find("another gemm-tune"), std::string::npos) << second.output;
  kill(first, SIGTERM);
  EXPECT_EQ(wait_for(first).status, 143);
}

TEST_F(GemmTune, TablesAreUnited) {
  ASSERT_EQ(run(quick("small.csv")).status, 0);
  fs::remove(table_ + "l");
  write("small.csv", "m,n,k,transa,transb\n18,18,40,T,N\n");
  const Ended ended = run(quick("small.csv"));
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(table().points.size(), 2u);
}

TEST_F(GemmTune, NeverReplacesWhatIsNotItsTable) {
  ASSERT_EQ(run(quick("small.csv")).status, 0);
  std::string other = read(table_);
  other.replace(other.find("\"sm_count\": 132"), 15, "\"sm_count\": 84");
  for (const std::string& content : {other, std::string("not a table"), std::string()}) {
    std::ofstream(table_) << content;
    const Ended ended = run(quick("small.csv"));
    EXPECT_EQ(ended.status, 1);
    EXPECT_NE(ended.output.find("choose another name with -o"), std::string::npos) << ended.output;
    EXPECT_EQ(read(table_), content);
  }
}

TEST_F(GemmTune, BadInputEndsWithAClearMessage) {
  write("bad.csv", "m,n,k,transa,transb\n1,2,x,N,N\n");
  write("bad_space.json", R"({"extra": [{"BM": 7}]})");
  write("empty_space.json", unusable_space());
  const struct {
    std::vector<std::string> arguments;
    int status;
    const char* expected;
  } cases[] = {
      {{"--no-such-option"}, 2, "no-such-option"},
      {{"--gpu", "zero"}, 2, "gpu"},
      {{"--gpu", "-1"}, 2, "gpu"},
      {{"--gpu", "1024"}, 2, "gpu"},
      {{"--budget", "0"}, 2, "budget"},
      {{"--budget", "nan"}, 2, "0.01 to 10080"},
      {{"--budget", "1e10"}, 2, "0.01 to 10080"},
      {{"--timeout", "nan"}, 2, "0.001 to 86400"},
      {{"--timeout", "inf"}, 2, "0.001 to 86400"},
      {{"--timeout", "1e10"}, 2, "0.001 to 86400"},
      {{"--list", "--dry-run"}, 2, "excludes"},
      {{"--gpu", "0", "--emulated"}, 2, "excludes"},
      {{"--emulated", "--shapes", file("bad.csv")}, 2, "line 2"},
      {{"--emulated", "--shapes", file("missing.csv")}, 2, "missing.csv"},
      {{"--emulated", "--no-default-shapes"}, 2, "no shapes to tune"},
      {{"--emulated", "--space", file("missing.json")}, 2, "missing.json"},
      {{"--emulated", "--space", file("bad_space.json")}, 2, "is missing"},
      {{"--emulated", "--space", file("empty_space.json"), "--dry-run"},
       1,
       "every configuration of the search space is out"},
      {{"--emulated", "--space", file("empty_space.json")}, 1, "every configuration of the search space is out"},
      {{"--emulated", "-o", file("no/such/folder/t.json")}, 1, "cannot write the trial log"},
      {{"--gpu", "99", "--space", file("space.json"), "-o", table_}, 1, "--emulated"},
  };
  for (const auto& c : cases) {
    const Ended ended = run(c.arguments);
    EXPECT_EQ(ended.status, c.status) << ended.output;
    EXPECT_NE(ended.output.find(c.expected), std::string::npos) << ended.output;
  }
  EXPECT_FALSE(fs::exists(table_));
}

TEST_F(GemmTune, BudgetStopsCleanly) {
  // The hanging candidates of the first shape outlast the budget.
  const Ended ended = run(quick("two.csv", {"--budget", "0.01", "--timeout", "0.1"}), "tile_=hang");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_NE(ended.output.find("2 shapes are not done yet"), std::string::npos) << ended.output;
  table();
}

TEST_F(GemmTune, ShapesThatDoNotFitAreSkippedWithTheReason) {
  write("two.csv", "m,n,k,transa,transb\n20000,20000,20000,N,N\n18,18,40,T,N\n");
  const Ended ended = run(quick("two.csv"));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_NE(ended.output.find("skipped 20000x20000x20000 NN"), std::string::npos) << ended.output;
  EXPECT_EQ(count_lines({"half of the free memory"}), 1u);
  EXPECT_EQ(table().points.size(), 1u);
  const Ended again = run(quick("two.csv"));
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_NE(again.output.find("1 shapes were skipped"), std::string::npos) << again.output;
  EXPECT_EQ(count_lines({"half of the free memory"}), 2u);
}

TEST_F(GemmTune, WhereEveryShapeIsSkippedItFails) {
  write("two.csv",
        "m,n,k,transa,transb,batch\n2147483647,2147483647,2147483647,N,N,1\n1048576,1048576,1048576,N,N,16777216\n");
  const Ended ended = run(quick("two.csv"));
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_EQ(count_lines({"half of the free memory"}), 2u);
  EXPECT_NE(ended.output.find("2 shapes were skipped"), std::string::npos) << ended.output;
}

TEST_F(GemmTune, AFileSizeLimitIsAnError) {
  ASSERT_EQ(run(quick("two.csv")).status, 0);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tight{fs::file_size(table_ + "l") + 300, before.rlim_max};
  write("small.csv", "m,n,k,transa,transb\n20,20,20,N,N\n");
  setrlimit(RLIMIT_FSIZE, &tight);
  const pid_t pid = start(quick("small.csv"));
  setrlimit(RLIMIT_FSIZE, &before);
  const Ended ended = wait_for(pid);
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_NE(ended.output.find("cannot write to the trial log"), std::string::npos) << ended.output;
  EXPECT_EQ(ended.output.find("has all results"), std::string::npos) << ended.output;
  EXPECT_EQ(table().points.size(), 2u);
}

TEST_F(GemmTune, ExplainsItselfWithoutAGpu) {
  EXPECT_EQ(run({"--version"}).status, 0);
  const Ended help = run({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.output.find("Examples:"), std::string::npos);
  EXPECT_NE(help.output.find("FLOAT in [0.001 to 86400]"), std::string::npos) << help.output;
  EXPECT_EQ(help.output.find("00000000"), std::string::npos) << help.output;

  const Ended list = run({"--list", "--emulated"});
  EXPECT_EQ(list.status, 0);
  for (const KernelConfig& config : emulated_configs())
    EXPECT_NE(list.output.find(config_id(config) + "  ok"), std::string::npos);
  write("empty_space.json", unusable_space());
  EXPECT_NE(run({"--list", "--space", file("empty_space.json")}).output.find("not a multiple of the warp tile"),
            std::string::npos);

  const std::string space = GEMM_SOURCE_DIR "/configs/space.json";
  const Ended plan = run({"--dry-run", "--space", space, "--no-default-shapes", "--shapes", file("two.csv")});
  EXPECT_EQ(plan.status, 0) << plan.output;
  EXPECT_NE(plan.output.find("shapes          2\n"), std::string::npos) << plan.output;
  EXPECT_EQ(plan.output.find("mulated"), std::string::npos) << plan.output;
  EXPECT_FALSE(fs::exists(table_));
}

TEST_F(GemmTune, PutsTheTableIntoConfigsWhereThereIsSuchAFolder) {
  const std::vector<std::string> arguments = {"--emulated", "--no-default-shapes", "--shapes", file("small.csv"),
                                              "--space",    file("space.json")};
  fs::create_directories(folder_ / "configs");
  ASSERT_EQ(run(arguments).status, 0);
  EXPECT_TRUE(fs::exists(folder_ / "configs" / (default_emulator_options().info.slug() + ".json")));
}

}  // namespace
}  // namespace gemm
