#include "dispatch/table.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace gemm {
namespace {

// Far above any real table (a point is about 500 bytes), so that a wrong path cannot eat the host's memory.
constexpr int64_t kMaxTableBytes = int64_t{64} << 20;

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }
  // False with errno when the system reports a late write error.
  bool close() { return descriptor_ < 0 || ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

Failure failure(const std::string& what, const std::string& path) {
  return {what + " '" + path + "': " + std::strerror(errno)};
}

bool write_all(int descriptor, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    done += static_cast<size_t>(written);
  }
  return true;
}

Result<std::string> read_file(const std::string& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return failure("cannot open table", path);
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return failure("cannot read table", path);
  if (!S_ISREG(info.st_mode)) return Failure{"table '" + path + "' is not a regular file"};
  if (info.st_size > kMaxTableBytes) return Failure{"table '" + path + "' is larger than 64 MiB, so it is no table"};
  std::string text(static_cast<size_t>(info.st_size), '\0');
  for (size_t done = 0; done < text.size();) {
    const ssize_t got = ::read(file.get(), text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure("cannot read table", path);
    if (got == 0) {
      text.resize(done);
      break;
    }
    done += static_cast<size_t>(got);
  }
  return text;
}

bool within_5_percent(int64_t a, int64_t b) { return std::abs(static_cast<double>(a - b)) <= 0.05 * static_cast<double>(b); }

}  // namespace

const PortfolioKernel* Table::find_kernel(const std::string& id) const {
  for (const PortfolioKernel& kernel : portfolio)
    if (kernel.id == id) return &kernel;
  return nullptr;
}

const TablePoint* Table::find_point(const Problem& problem) const {
  for (const TablePoint& point : points) {
    const Problem& p = point.problem;
    if (p.m == problem.m && p.n == problem.n && p.k == problem.k && p.op_a == problem.op_a && p.op_b == problem.op_b &&
        p.batch == problem.batch)
      return &point;
  }
  return nullptr;
}

Result<Table> load_table(const std::string& path, std::vector<std::string>* warnings) {
  const Result<std::string> text = read_file(path);
  if (!text) return Failure{text.error()};
  Result<Table> table = parse_table(*text, warnings);
  if (!table) return Failure{"table '" + path + "': " + table.error()};
  return table;
}

Result<bool> save_table(const Table& table, const std::string& path) {
  static std::atomic<unsigned> counter{0};
  const std::string temporary = path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
  File file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) return failure("cannot write table", path);
  const bool written = write_all(file.get(), to_json(table)) && ::fsync(file.get()) == 0 && file.close();
  if (written && ::rename(temporary.c_str(), path.c_str()) == 0) return true;
  const Failure failed = failure("cannot write table", path);
  ::unlink(temporary.c_str());
  return failed;
}

TableMatch match(const Table& table, const DeviceInfo& device) {
  const DeviceInfo& own = table.device;
  if (own.limits.compute_capability > device.limits.compute_capability) return TableMatch::unusable;
  // The name does not decide: one name covers GPUs of several sizes, and a MIG slice changes it.
  const bool same = own.limits.compute_capability == device.limits.compute_capability && own.sm_count == device.sm_count &&
                    within_5_percent(own.memory_bytes, device.memory_bytes) && table.provenance == device.provenance();
  return same ? TableMatch::exact : TableMatch::borrowed;
}

}  // namespace gemm
