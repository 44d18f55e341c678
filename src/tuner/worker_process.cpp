#include "tuner/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "tuner/interrupt.h"

namespace gemm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLongestWaitSeconds = 30 * 86400.0;  // the clock counts nanoseconds in 64 bits

// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become(std::vector<char*>& arguments, pid_t parent) {
  // A terminal sends these to the worker too, but the tuner ends it.
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  signal(SIGTERM, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(std::vector<std::string> command) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
    return Failure{std::string("cannot make a socket for the worker: ") + std::strerror(errno)};
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  command.push_back(std::to_string(ends[1]));
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) become(arguments, parent);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return Failure{std::string("cannot start the worker: ") + std::strerror(errno)};
  }
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(pid, ends[0]));
}

WorkerProcess::~WorkerProcess() { end(); }

bool WorkerProcess::send(const std::string& line) {
  const std::string text = line + "\n";
  size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t count = ::send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    sent += static_cast<size_t>(count);
  }
  return true;
}

WorkerProcess::Status WorkerProcess::receive(std::string& line, double timeout_s) {
  const std::chrono::duration<double> wait(std::min(timeout_s, kLongestWaitSeconds));
  const Clock::time_point deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
  while (true) {
    if (interrupt_signal() != 0) return Status::interrupted;
    if (const size_t end = received_.find('\n'); end != std::string::npos) {
      line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return Status::line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Status::timeout;
    pollfd wanted[2] = {{fd_, POLLIN, 0}, {interrupt_descriptor(), POLLIN, 0}};
    if (poll(wanted, 2, static_cast<int>(std::min<int64_t>(left, 1'000'000))) < 0 && errno != EINTR) return Status::closed;
    if ((wanted[0].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
    char buffer[65536];
    const ssize_t count = read(fd_, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Status::closed;
    received_.append(buffer, static_cast<size_t>(count));
  }
}

std::string WorkerProcess::end() {
  if (pid_ <= 0) return "ended";
  // A worker that closed its end is about to go by itself; its own exit status tells more than our signal.
  int status = 0;
  pid_t ended = 0;
  for (int wait_ms = 0; wait_ms < 200 && ended == 0; wait_ms += 10) {
    ended = waitpid(pid_, &status, WNOHANG);
    char byte;
    const bool open = recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (ended == 0 && open) break;
    if (ended == 0) usleep(10'000);
  }
  if (ended == 0) {
    kill(pid_, SIGKILL);
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  }
  close(fd_);
  pid_ = -1;
  if (WIFEXITED(status)) return "exit status " + std::to_string(WEXITSTATUS(status));
  return "killed by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
}

}  // namespace gemm
