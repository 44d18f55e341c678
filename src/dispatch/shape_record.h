// The file that GEMM_RECORD names: shapes that the table does not have, for gemm-tune --shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_set>

#include "kernels/problem.h"
#include "kernels/result.h"

namespace gemm {

// Thread-safe. Several of them, also in other processes, may add to one file at the same time: each line is written at once,
// under a lock of the file, and only if the file does not have it yet.
class ShapeRecord {
 public:
  static constexpr const char* kHeader = "m,n,k,transa,transb,batch,lda,ldb,ldc";
  static constexpr size_t kMaxLines = 10000;  // of the file, the header not counted: more than anyone tunes

  // Nothing is opened before the first shape.
  explicit ShapeRecord(std::string path) : path_(std::move(path)) {}
  ~ShapeRecord();
  ShapeRecord(const ShapeRecord&) = delete;
  ShapeRecord& operator=(const ShapeRecord&) = delete;

  // Appends the shape unless gemm-tune could not read it, or the file has it or is full. Failure, once: the file cannot be
  // used; later shapes are dropped.
  Result<bool> add(const Problem& problem);

 private:
  Result<bool> append(const std::string& line);
  std::string open_file();
  std::string catch_up();
  bool drop_unfinished();

  std::string path_;
  std::mutex mutex_;
  int file_ = -1;
  bool given_up_ = false;
  int64_t read_bytes_ = 0;  // of the file, whose lines are in known_
  std::string unfinished_;  // the last line, where it has no end yet
  std::unordered_set<std::string> known_;
};

}  // namespace gemm
