#include "tuner/protocol.h"

#include <gtest/gtest.h>

#include <limits>

#include "emulator/emulated_device.h"
#include "tuner/worker_process.h"

namespace gemm {
namespace {

TEST(Protocol, RequestsComeThrough) {
  Request request{Request::Kind::prepare, packed_problem(5, 6, 7, Op::T, Op::N, 3), {}, Stage::finals, true};
  for (const KernelConfig& config : emulated_configs()) request.choices.push_back({config, 3, Reduction::kernel});
  const std::string line = to_line(request);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const std::optional<Request> read = request_from_line(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, request.kind);
  EXPECT_EQ(read->problem, request.problem);
  EXPECT_EQ(read->choices, request.choices);
  EXPECT_EQ(read->stage, request.stage);
  EXPECT_TRUE(read->ahead);
}

TEST(WorkerProcess, LongTimeLimitsAreNoShortOnes) {
  for (const double limit_s : {60.0, 1e10, 1e300, std::numeric_limits<double>::infinity()}) {
    auto worker = WorkerProcess::start({"/bin/bash", "-c", "sleep 0.05; echo hello >&$0"}).value_or_throw();
    std::string line;
    EXPECT_EQ(worker->receive(line, limit_s), WorkerProcess::Status::line) << limit_s;
    EXPECT_EQ(line, "hello");
  }
}

TEST(Protocol, RepliesComeThrough) {
  Reply hello{Reply::Kind::hello};
  hello.device = default_emulator_options().info;
  hello.environment = {{"nvrtc", "13.0"}};
  hello.message = "no cuBLAS";
  const std::optional<Reply> greeted = reply_from_line(to_line(hello));
  ASSERT_TRUE(greeted);
  EXPECT_EQ(greeted->kind, Reply::Kind::hello);
  EXPECT_EQ(greeted->device.name, hello.device.name);
  EXPECT_EQ(greeted->device.limits.threads_per_sm, hello.device.limits.threads_per_sm);
  EXPECT_EQ(greeted->environment, hello.environment);
  EXPECT_EQ(greeted->message, hello.message);

  Reply begun{Reply::Kind::begun};
  begun.index = 4;
  EXPECT_EQ(reply_from_line(to_line(begun))->index, 4);
  for (const Phase phase : {Phase::setup, Phase::build, Phase::run, Phase::turns}) {
    begun.phase = phase;
    EXPECT_EQ(reply_from_line(to_line(begun))->phase, phase);
  }

  Reply finished{Reply::Kind::finished};
  finished.index = 2;
  finished.outcome.invalidity = Invalidity::correctness;
  finished.outcome.reason = "wrong\nresult \xff";  // a compiler's log may hold anything
  finished.outcome.times_us = {1, 2.5};
  const std::optional<Reply> read = reply_from_line(to_line(finished));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->outcome.invalidity, Invalidity::correctness);
  EXPECT_EQ(read->outcome.times_us, finished.outcome.times_us);
  EXPECT_EQ(to_line(finished).find('\n'), std::string::npos);

  Reply baselines{Reply::Kind::baselines};
  baselines.baselines = {{1, 2}, {3}, "algorithm 1"};
  EXPECT_EQ(reply_from_line(to_line(baselines))->baselines.cublas_us, (std::vector<double>{1, 2}));
  EXPECT_EQ(reply_from_line(to_line(baselines))->baselines.cublaslt_algorithm, "algorithm 1");

  Reply skipped{Reply::Kind::skipped};
  skipped.message = "too large";
  EXPECT_EQ(reply_from_line(to_line(skipped))->message, "too large");
}

TEST(Protocol, OtherLinesAreNoMessages) {
  for (const char* line : {"", "hello", "{", "{}", "[1]", R"({"reply":"greeting"})", R"({"reply":"finished","outcome":{}})",
                           R"({"request":"run"})", R"({"request":"stop","problem":{}})"}) {
    EXPECT_FALSE(reply_from_line(line)) << line;
    EXPECT_FALSE(request_from_line(line)) << line;
  }
}

}  // namespace
}  // namespace gemm
