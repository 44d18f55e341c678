// The trial log: one JSON object per line beside the table, only ever appended to. It is the evidence for the table and the
// journal that an interrupted run goes on from. docs/tuning.md lists its fields.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/result.h"
#include "tuner/trial.h"

namespace gemm {

// What results depend on; a log with another header belongs to other results.
struct LogHeader {
  std::string device;  // name, SM count and memory
  std::string space_hash;
  std::string kernel_source_hash;
  std::string method;  // version of the way to measure

  friend bool operator==(const LogHeader&, const LogHeader&) = default;
};

// By to_string(problem).
using EvidenceMap = std::map<std::string, Evidence>;

// What a run with this header would find in the log at `path`: nothing where there is none, or another's. Takes no lock and
// writes nothing.
EvidenceMap read_evidence(const std::string& path, const LogHeader& header);

class TrialLog {
 public:
  // Opens or starts the log, and locks it until this object goes. A log of another header (or any, with `fresh`) is moved
  // aside and named in *messages. Failure: cannot write, or another tuner holds the lock.
  static Result<TrialLog> open(const std::string& path, const LogHeader& header, bool fresh,
                               std::vector<std::string>* messages);

  TrialLog(TrialLog&& other) noexcept;
  TrialLog& operator=(TrialLog&&) = delete;
  ~TrialLog();

  // What earlier runs and this one have found.
  const EvidenceMap& evidence() const { return evidence_; }
  const Evidence& evidence(const Problem& problem) { return of(problem); }

  // Each writes one line at once and throws Error when that fails.
  void add(const Trial& trial);
  void add_baselines(const Problem& problem, const BaselineTimes& times);
  void finish(const Problem& problem);
  // It could not be tuned. Whoever opens the log next finds the problem unfinished and without its failed trials, so that it
  // is tried again.
  void skip(const Problem& problem, const std::string& why);

  // False once a line could not be written.
  bool has_everything() const { return has_everything_; }

 private:
  TrialLog(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  Evidence& of(const Problem& problem);
  void append(const std::string& line);

  int fd_ = -1;
  std::string path_;
  bool has_everything_ = true;
  EvidenceMap evidence_;
};

std::string utc_timestamp();

}  // namespace gemm
