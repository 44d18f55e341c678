#include "tuner/progress.h"

#include <cstdio>

#include "tuner/formatted.h"

namespace gemm {
namespace {

constexpr double kTerminalSeconds = 0.1;  // between two renewals of the line
constexpr double kPlainSeconds = 15;      // between two lines

}  // namespace

std::string duration_text(double seconds) {
  return seconds < 90 ? formatted("%.0f s", seconds) : formatted("%.0f min", seconds / 60);
}

Progress::Progress(bool terminal, size_t total) : terminal_(terminal), total_(total), last_shown_(start_) {}

Progress::~Progress() {
  if (terminal_) std::fputs("\r\033[K", stderr);
}

void Progress::point(const std::string& problem) {
  problem_ = problem;
  stage_.clear();
  best_us_ = cublas_us_ = 0;
  show(false);
}

void Progress::stage(const std::string& name, size_t done, size_t of) {
  stage_ = name + " " + std::to_string(done) + "/" + std::to_string(of);
  ++tried_;
  show(false);
}

void Progress::best(double best_us, double cublas_us) {
  best_us_ = best_us;
  cublas_us_ = cublas_us;
}

void Progress::point_done() {
  ++done_;
  show(done_ == total_);
}

void Progress::message(const std::string& text) {
  if (terminal_) std::fputs("\r\033[K", stderr);
  std::fprintf(stderr, "%s\n", text.c_str());
  if (terminal_) show(true);
}

std::string Progress::line() const {
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  std::string text = "[" + std::to_string(done_) + "/" + std::to_string(total_) + "] " + problem_;
  if (!stage_.empty()) text += "  " + stage_;
  char numbers[96];
  if (best_us_ > 0) {
    std::snprintf(numbers, sizeof numbers, "  best %.4g us", best_us_);
    text += numbers;
  }
  if (best_us_ > 0 && cublas_us_ > 0) {
    std::snprintf(numbers, sizeof numbers, " (cuBLAS %.4g us, x%.2f)", cublas_us_, cublas_us_ / best_us_);
    text += numbers;
  }
  text += "  " + std::to_string(tried_) + " trials, " + std::to_string(failed_) + " rejected";
  if (done_ > 0 && done_ < total_)
    text += "  about " + duration_text(elapsed / static_cast<double>(done_) * static_cast<double>(total_ - done_)) + " left";
  return text;
}

void Progress::show(bool now) {
  const Clock::time_point time = Clock::now();
  const double since = std::chrono::duration<double>(time - last_shown_).count();
  if (!now && since < (terminal_ ? kTerminalSeconds : kPlainSeconds)) return;
  last_shown_ = time;
  if (terminal_)
    std::fprintf(stderr, "\r\033[K%.200s", line().c_str());
  else
    std::fprintf(stderr, "%s\n", line().c_str());
  std::fflush(stderr);
}

}  // namespace gemm
