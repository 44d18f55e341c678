// What a person sees while tuning: one line that renews itself on a terminal, sparse lines elsewhere.
#pragma once

#include <chrono>
#include <string>

namespace gemm {

// "42 s" or "3 min".
std::string duration_text(double seconds);

class Progress {
 public:
  // `total` points to do. Lines go to stderr.
  Progress(bool terminal, size_t total);
  ~Progress();

  void expect(size_t points) { total_ = points; }               // to do in all, where that was not known before
  void point(const std::string& problem);                       // this one begins
  void stage(const std::string& name, size_t done, size_t of);  // candidates of the stage
  void best(double best_us, double cublas_us);                  // 0 where not known
  void failed() { ++failed_; }                                  // one more candidate was rejected
  void point_done();
  void message(const std::string& text);  // a lasting line

 private:
  using Clock = std::chrono::steady_clock;
  std::string line() const;
  void show(bool now);

  bool terminal_;
  size_t total_, done_ = 0, failed_ = 0, tried_ = 0;
  std::string problem_, stage_;
  double best_us_ = 0, cublas_us_ = 0;
  Clock::time_point start_ = Clock::now(), last_shown_;
};

}  // namespace gemm
