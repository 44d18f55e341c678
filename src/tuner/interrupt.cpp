#include "tuner/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "kernels/result.h"

namespace gemm {
namespace {

volatile std::sig_atomic_t g_signal = 0;
int g_pipe[2] = {-1, -1};

void on_signal(int signal) {
  if (g_signal == 0) g_signal = signal;
  const char byte = 0;
  // A full pipe is readable already, so a failed write loses nothing.
  if (write(g_pipe[1], &byte, 1) < 0) return;
}

}  // namespace

void record_interrupts() {
  if (g_pipe[0] < 0 && pipe2(g_pipe, O_CLOEXEC | O_NONBLOCK) != 0) throw Error("cannot make a pipe for signals");
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // Under nohup a hangup means nothing.
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  // A file beyond the size limit is then an error of write, which says what was lost.
  signal(SIGXFSZ, SIG_IGN);
}

int interrupt_signal() { return g_signal; }

int interrupt_descriptor() { return g_pipe[0]; }

}  // namespace gemm
