#include "dispatch/shape_record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kernels/launch_arithmetic.h"

namespace gemm {
namespace {

// gemm-tune reads no longer numbers, such as the leading dimension of a single column may be, and one that it cannot read
// makes it refuse the whole file.
bool can_be_tuned(const Problem& p) { return std::max({p.m, p.n, p.k, p.batch, p.lda, p.ldb, p.ldc}) <= kMaxInt; }

std::string line_of(const Problem& p) {
  std::string text;
  const auto add = [&](const std::string& field) { text += (text.empty() ? "" : ",") + field; };
  for (const int64_t size : {p.m, p.n, p.k}) add(std::to_string(size));
  add(std::string(1, to_char(p.op_a)));
  add(std::string(1, to_char(p.op_b)));
  for (const int64_t value : {p.batch, p.lda, p.ldb, p.ldc}) add(std::to_string(value));
  return text;
}

// Other processes wait while it lives. Where the file system knows no locks, single writes at the end of the file still keep
// lines whole, though a shape may come twice.
class FileLock {
 public:
  explicit FileLock(int file) : file_(file), held_(flock(file, LOCK_EX) == 0) {}
  ~FileLock() { flock(file_, LOCK_UN); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const { return held_; }

 private:
  int file_;
  bool held_;
};

}  // namespace

ShapeRecord::~ShapeRecord() {
  if (file_ >= 0) close(file_);
}

Result<bool> ShapeRecord::add(const Problem& problem) {
  if (!can_be_tuned(problem)) return true;
  const std::string line = line_of(problem);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (given_up_ || known_.count(line) != 0) return true;
  Result<bool> appended = append(line);
  if (!appended) given_up_ = true;
  return appended;
}

Result<bool> ShapeRecord::append(const std::string& line) {
  if (std::string why = open_file(); !why.empty()) return Failure{why};
  const FileLock lock(file_);
  if (std::string why = catch_up(); !why.empty()) return Failure{why};
  // A process that was killed in mid-write has left a line without an end, which gemm-tune could not read. Without a lock it
  // may still be coming.
  if (!unfinished_.empty() && lock.held() && !drop_unfinished())
    return Failure{"GEMM_RECORD: cannot shorten '" + path_ + "': " + std::strerror(errno)};
  if (known_.size() >= kMaxLines) {
    given_up_ = true;
    return true;
  }
  if (!known_.insert(line).second) return true;
  std::string text = unfinished_.empty() ? "" : "\n";
  if (read_bytes_ == 0) text = std::string(kHeader) + "\n";
  text += line + "\n";
  if (write(file_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return Failure{"GEMM_RECORD: cannot write to '" + path_ + "': " + std::strerror(errno)};
  return true;
}

std::string ShapeRecord::open_file() {
  if (file_ >= 0) return {};
  file_ = open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  return file_ >= 0 ? std::string() : "GEMM_RECORD: cannot open '" + path_ + "': " + std::strerror(errno);
}

bool ShapeRecord::drop_unfinished() {
  read_bytes_ -= static_cast<int64_t>(unfinished_.size());
  unfinished_.clear();
  return ftruncate(file_, read_bytes_) == 0;
}

// Reads what has come to the file since the last time. Returns why it cannot be used, or an empty string.
std::string ShapeRecord::catch_up() {
  char piece[4096];
  for (;;) {
    const ssize_t bytes = pread(file_, piece, sizeof piece, read_bytes_);
    if (bytes < 0) return "GEMM_RECORD: cannot read '" + path_ + "': " + std::strerror(errno);
    if (bytes == 0) break;
    const bool at_begin = read_bytes_ == 0;
    read_bytes_ += bytes;
    unfinished_.append(piece, static_cast<size_t>(bytes));
    const std::string header = std::string(kHeader) + "\n";
    if (at_begin && !unfinished_.starts_with(header) && !header.starts_with(unfinished_))
      return "GEMM_RECORD: '" + path_ + "' is no record of shapes: its first line is not " + kHeader;
    size_t begin = 0;
    for (size_t end; (end = unfinished_.find('\n', begin)) != std::string::npos; begin = end + 1)
      known_.insert(unfinished_.substr(begin, end - begin));
    unfinished_.erase(0, begin);
  }
  known_.erase(kHeader);
  return {};
}

}  // namespace gemm
