// What the library says to people, as GEMM_LOG asks for it.
#pragma once

#include <functional>
#include <string>

namespace gemm {

enum class LogLevel { off, warn, info, debug };

// The level that GEMM_LOG names: off, warn (also where it is not set), info or debug. Of another value *complaint says what
// is wrong, and warn holds.
LogLevel log_level_from_environment(std::string* complaint);

// Thread-safe where its sinks are; lines on stderr are. Ask wants() before making a text that costs something.
class Log {
 public:
  using Sink = std::function<void(const std::string&)>;

  // Null sinks: one line on stderr, as "gemm: warning: …", "gemm: info: …" and "gemm: debug: …".
  explicit Log(LogLevel level, Sink warn = nullptr, Sink inform = nullptr);

  bool wants(LogLevel level) const { return level <= level_; }
  void warn(const std::string& text) const;
  void info(const std::string& text) const;
  void debug(const std::string& text) const;

 private:
  LogLevel level_;
  Sink warn_, inform_;
};

}  // namespace gemm
