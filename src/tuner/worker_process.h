// The worker as the coordinator sees it: a child process at the other end of a socket.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/result.h"

namespace gemm {

class WorkerProcess {
 public:
  // Starts `command` with the number of its end of the socket as the last argument. The child ignores SIGINT (a terminal
  // sends it to both) and dies with its parent.
  static Result<std::unique_ptr<WorkerProcess>> start(std::vector<std::string> command);
  ~WorkerProcess();  // kills it
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  bool send(const std::string& line);

  enum class Status { line, timeout, closed, interrupted };
  // Waits for one line, the time limit, the other end's end, or an interrupt (interrupt.h).
  Status receive(std::string& line, double timeout_s);

  // Kills it if it still runs, and says how it ended: "exit status 1", "killed by signal 11 (Segmentation fault)".
  std::string end();

 private:
  WorkerProcess(pid_t pid, int fd) : pid_(pid), fd_(fd) {}

  pid_t pid_;
  int fd_;
  std::string received_;
};

}  // namespace gemm
