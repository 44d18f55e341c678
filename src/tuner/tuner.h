// The whole of tuning: shapes and a search space in, a table out. The coordinator never touches a GPU; its worker does.
#pragma once

#include <string>
#include <vector>

#include "kernels/device.h"
#include "tuner/shapes.h"
#include "tuner/space.h"

namespace gemm {

struct TuneOptions {
  std::vector<std::string> worker_command;  // starts a worker, given a socket number as one more argument
  std::vector<Shape> shapes;                // in the order in which to tune
  SearchSpace space;
  std::string table_path;     // empty: configs/<gpu>.json, or <gpu>.json where there is no folder configs
  double budget_minutes = 0;  // 0: no limit
  bool fresh = false;         // measure again what the log already has
  int candidates = 44;        // per shape, at most
  int calibration = 5000;     // random problems to fit and to judge the selector on; 0: none
  double timeout_s = 20;      // for one candidate
  std::string command_line;   // for the table
  bool terminal = false;      // progress on one line
};

// What to say where the space has no configuration for a device.
std::string no_valid_configs(const DeviceInfo& device);

// Tunes and writes the table. Returns the exit status: 0, 1 after a failure or where every shape was skipped, 128 + n
// after signal n; finished work is kept in every case. Messages go to stderr.
int tune(const TuneOptions& options);

}  // namespace gemm
