#include "kernels/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace gemm {

bool FileDescriptor::close() { return descriptor_ < 0 || ::close(std::exchange(descriptor_, -1)) == 0; }

Result<std::string> read_regular_file(const std::string& path, int64_t most_bytes) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status = {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return Failure{std::strerror(errno)};
  if (!S_ISREG(status.st_mode)) return Failure{"not a regular file"};
  if (status.st_size > most_bytes) return Failure{"larger than " + std::to_string(most_bytes >> 20) + " MiB"};
  std::string content(static_cast<size_t>(status.st_size), '\0');
  for (size_t done = 0; done < content.size();) {
    const ssize_t bytes = ::read(file.get(), content.data() + done, content.size() - done);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return Failure{std::strerror(errno)};
    if (bytes == 0) content.resize(done);  // it became shorter while it was read
    done += static_cast<size_t>(bytes);
  }
  return content;
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
