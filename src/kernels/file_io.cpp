#include "kernels/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace gemm {

bool FileDescriptor::close() { return descriptor_ < 0 || ::close(std::exchange(descriptor_, -1)) == 0; }

namespace {

// Reads at most `most` bytes, to the end of the file otherwise.
Result<std::string> read_from(int descriptor, size_t most) {
  std::string content(most, '\0');
  for (size_t done = 0; done < content.size();) {
    const ssize_t bytes = ::read(descriptor, content.data() + done, content.size() - done);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return Failure{std::strerror(errno)};
    if (bytes == 0) content.resize(done);  // it is shorter, or became so while it was read
    done += static_cast<size_t>(bytes);
  }
  return content;
}

// How large the file is.
Result<int64_t> size_of_regular(const FileDescriptor& file) {
  struct stat status = {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return Failure{std::strerror(errno)};
  if (!S_ISREG(status.st_mode)) return Failure{"not a regular file"};
  return static_cast<int64_t>(status.st_size);
}

// Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
int open_to_read(const std::string& path) { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }

}  // namespace

Result<std::string> read_regular_file(const std::string& path, int64_t most_bytes) {
  const FileDescriptor file(open_to_read(path));
  const Result<int64_t> size = size_of_regular(file);
  if (!size) return Failure{size.error()};
  if (*size > most_bytes) return Failure{"larger than " + std::to_string(most_bytes >> 20) + " MiB"};
  return read_from(file.get(), static_cast<size_t>(*size));
}

Result<std::string> read_beginning(const std::string& path, size_t bytes) {
  const FileDescriptor file(open_to_read(path));
  if (const Result<int64_t> size = size_of_regular(file); !size) return Failure{size.error()};
  return read_from(file.get(), bytes);
}

namespace {

// What renaming would replace: the file that a link leads to, never a device or a pipe. A folder is left to rename to
// refuse.
Result<std::string> replaceable(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return path;
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return Failure{"not a regular file"};
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  if (!real) return Failure{std::strerror(errno)};
  return std::string(real.get());
}

}  // namespace

Result<bool> replace_file(const std::string& given_path, const std::string& content) {
  const Result<std::string> replaced = replaceable(given_path);
  if (!replaced) return Failure{replaced.error()};
  const std::string& path = *replaced;
  static std::atomic<unsigned> counter{0};
  const std::string temporary = path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) return Failure{std::strerror(errno)};
  const bool written = write_all(file.get(), content) && ::fsync(file.get()) == 0 && file.close();
  if (written && ::rename(temporary.c_str(), path.c_str()) == 0) return true;
  const Failure failed{std::strerror(errno)};
  ::unlink(temporary.c_str());
  return failed;
}

bool write_all(int descriptor, const std::string& content) {
  for (size_t done = 0; done < content.size();) {
    const ssize_t bytes = ::write(descriptor, content.data() + done, content.size() - done);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return false;
    done += static_cast<size_t>(bytes);
  }
  return true;
}

}  // namespace gemm
