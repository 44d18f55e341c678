// What coordinator and worker say to each other: one JSON object per line.
//
//   coordinator                               worker
//                                             hello {device, environment}   or  failed {message}
//   prepare {problem, choices}                (compiles in the background, no reply)
//   run {problem, choices, stage, ahead}      begun {index, phase} ... finished {index, outcome} ... [baselines] done
//
// `begun` names what is in flight, so that a hang or a crash is charged to it; index -1 is the problem as a whole. While
// candidates are timed in turns, each is announced before its warm-up and before each sample, baselines as -1.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "tuner/trial.h"

namespace gemm {

struct Request {
  enum class Kind { prepare, run } kind = Kind::run;
  Problem problem;
  std::vector<Choice> choices;
  Stage stage = Stage::screen;
  bool ahead = false;  // run: compile all of them in the background too, before what was prepared
};

// setup: operands and reference of the problem; build: waiting for the compiler; run: checked or timed
// alone; turns: timed in turns with others.
enum class Phase { setup, build, run, turns };

struct Reply {
  enum class Kind { hello, failed, begun, finished, baselines, skipped, done } kind = Kind::done;
  Reply() = default;
  explicit Reply(Kind its_kind) : kind(its_kind) {}

  int index = -1;            // begun, finished
  Phase phase = Phase::run;  // begun
  Outcome outcome;           // finished
  BaselineTimes baselines;
  std::string message;                             // failed, skipped; hello: a warning
  DeviceInfo device;                               // hello
  std::map<std::string, std::string> environment;  // hello
};

std::string to_line(const Request& request);
std::string to_line(const Reply& reply);

// Nothing when the line is no such message.
std::optional<Request> request_from_line(const std::string& line);
std::optional<Reply> reply_from_line(const std::string& line);

}  // namespace gemm
