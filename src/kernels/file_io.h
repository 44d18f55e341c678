// Small files, read whole and written whole.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/result.h"

namespace gemm {

// Closes an open file when it goes.
class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return descriptor_; }
  // False with errno when the system reports a late write error.
  bool close();

 private:
  int descriptor_;
};

// The content of a regular file of at most `most_bytes`. Failure: why not (no such file, a folder, too large, …), without
// the path.
Result<std::string> read_regular_file(const std::string& path, int64_t most_bytes);

// The first `bytes` of a regular file, or all of it where it is shorter. Failures as above.
Result<std::string> read_beginning(const std::string& path, size_t bytes);

// Writes a temporary file beside `path`, flushes it to the disk and renames it, so that readers only ever see a whole file.
// Failure: the reason, without the path.
Result<bool> replace_file(const std::string& path, const std::string& content);

// False with errno when not everything could be written.
bool write_all(int descriptor, const std::string& content);

}  // namespace gemm
