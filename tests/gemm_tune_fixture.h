// The real gemm-tune, from its command line to the table, on the emulated device, in a folder of its own.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dispatch/table.h"
#include "emulator/emulated_device.h"
#include "kernels/kernel_spec.h"
#include "tuner/json_forms.h"

namespace gemm::test {

namespace fs = std::filesystem;

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
    for (int i = 0; i < 3000 && log_lines().size() < lines; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
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

}  // namespace gemm::test
