#include "tuner/trial_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>

#include "kernels/kernel_spec.h"
#include "tuner/json_forms.h"
#include "tuner/statistics.h"

namespace gemm {
namespace {

constexpr const char* kSchema = "gemm-tune trial log";
constexpr int kVersion = 1;

Json header_json(const LogHeader& header) {
  return Json{{"schema", kSchema},
              {"version", kVersion},
              {"device", header.device},
              {"space_hash", header.space_hash},
              {"kernel_source_hash", header.kernel_source_hash},
              {"method", header.method}};
}

// The line of one trial, in the words of the T4 auto-tuning format where it has them; its times are milliseconds.
Json trial_json(const Trial& trial) {
  const Outcome& outcome = trial.outcome;
  std::vector<double> runtimes_ms;
  for (double us : outcome.times_us) runtimes_ms.push_back(us / 1000);
  Json configuration = to_json(trial.choice.config);
  configuration["split_k"] = trial.choice.split_k;
  configuration["reduction"] = to_string(trial.choice.reduction);
  configuration["relayout"] = to_string(trial.choice.relayout);
  Json measurements = Json::array();
  if (outcome.correct())
    measurements.push_back({{"name", "time"}, {"value", summarise(outcome.times_us).median / 1000}, {"unit", "ms"}});
  return Json{{"timestamp", trial.timestamp},
              {"problem", to_json(trial.problem)},
              {"stage", to_string(trial.stage)},
              {"kernel", config_id(trial.choice.config)},
              {"configuration", configuration},
              {"objectives", {"time"}},
              {"times", {{"compilation_time", outcome.compile_ms}, {"runtimes", runtimes_ms}}},
              {"invalidity", to_string(outcome.invalidity)},
              {"correctness", outcome.correct() ? 1 : 0},
              {"measurements", measurements},
              {"reason", outcome.reason},
              {"max_scaled_error", outcome.max_scaled_error},
              {"registers", outcome.registers},
              {"spill_bytes", outcome.spill_bytes},
              {"shared_bytes", outcome.shared_bytes}};
}

Trial trial_from_json(const Json& json) {
  Json outcome = json;
  outcome["compile_ms"] = json.at("times").at("compilation_time");
  outcome["times_us"] = json.at("times").at("runtimes");
  for (Json& time : outcome["times_us"]) time = time.get<double>() * 1000;
  const Json& configuration = json.at("configuration");
  const Json choice = {{"kernel", json.at("kernel")},
                       {"split_k", configuration.at("split_k")},
                       {"reduction", configuration.at("reduction")},
                       {"relayout", configuration.at("relayout")}};
  return {json.at("timestamp").get<std::string>(), problem_from_json(json.at("problem")), choice_from_json(choice),
          stage_from_string(json.at("stage").get<std::string>()), outcome_from_json(outcome)};
}

std::string system_failure(const std::string& what, const std::string& path) {
  return what + " '" + path + "': " + std::strerror(errno);
}

// An unused name beside `path`: "table.json.jsonl.old-1".
std::string aside_name(const std::string& path) {
  for (int i = 1;; ++i) {
    std::string name = path + ".old-" + std::to_string(i);
    if (::access(name.c_str(), F_OK) != 0) return name;
  }
}

// A descriptor of the file, locked for this process alone.
Result<int> open_locked(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return Failure{system_failure("cannot write the trial log", path)};
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  const std::string why = errno == EWOULDBLOCK
                              ? "another gemm-tune is working on '" + path + "'; wait for it or choose another table with -o"
                              : system_failure("cannot lock the trial log", path);
  ::close(fd);
  return Failure{why};
}

std::vector<std::string> complete_lines(const std::string& path, bool* torn) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> lines;
  std::string line;
  *torn = false;
  while (std::getline(file, line)) {
    if (file.eof())
      *torn = true;  // no newline at its end: the writer died in it
    else
      lines.push_back(line);
  }
  return lines;
}

bool same_header(const std::string& line, const LogHeader& header) {
  return Json::parse(line, nullptr, false) == header_json(header);
}

Evidence& evidence_of(const Problem& problem, EvidenceMap& all) {
  Evidence& evidence = all[to_string(problem)];
  evidence.problem = problem;
  return evidence;
}

// A line that is not understood (torn by a crash) is passed over.
void read_line(const std::string& line, EvidenceMap& all) {
  try {
    const Json json = Json::parse(line);
    const Problem problem = problem_from_json(json.at("problem"));
    if (json.contains("configuration")) {
      evidence_of(problem, all).trials.push_back(trial_from_json(json));
    } else if (json.contains("cublas_us")) {
      evidence_of(problem, all).baselines = {json.at("cublas_us").get<std::vector<double>>(),
                                             json.at("cublaslt_best_us").get<std::vector<double>>(),
                                             json.at("cublaslt_algorithm").get<std::string>()};
    } else if (json.contains("finished")) {
      Evidence& evidence = evidence_of(problem, all);
      evidence.finished = json.at("skipped").get<std::string>().empty();
      if (!evidence.finished) std::erase_if(evidence.trials, [](const Trial& trial) { return !trial.outcome.correct(); });
    }
  } catch (const std::exception&) {
  }
}

// Of the lines of a log, whose first is its header.
EvidenceMap read_lines(const std::vector<std::string>& lines) {
  EvidenceMap all;
  for (size_t i = 1; i < lines.size(); ++i) read_line(lines[i], all);
  return all;
}

}  // namespace

EvidenceMap read_evidence(const std::string& path, const LogHeader& header) {
  bool torn = false;
  const std::vector<std::string> lines = complete_lines(path, &torn);
  return !lines.empty() && same_header(lines.front(), header) ? read_lines(lines) : EvidenceMap{};
}

std::string utc_timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

TrialLog::TrialLog(TrialLog&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)), evidence_(std::move(other.evidence_)) {}

TrialLog::~TrialLog() {
  if (fd_ >= 0) ::close(fd_);  // and with it the lock
}

Result<TrialLog> TrialLog::open(const std::string& path, const LogHeader& header, bool fresh,
                                std::vector<std::string>* messages) {
  Result<int> fd = open_locked(path);
  if (!fd) return Failure{fd.error()};
  bool torn = false;
  std::vector<std::string> lines = complete_lines(path, &torn);
  if (!lines.empty() && (fresh || !same_header(lines.front(), header))) {
    const std::string aside = aside_name(path);
    if (::rename(path.c_str(), aside.c_str()) != 0) {
      const std::string why = system_failure("cannot set aside the trial log", path);
      ::close(*fd);
      return Failure{why};
    }
    messages->push_back(
        (fresh ? "starting afresh" : "the trial log belongs to another device, space, kernel source or method") +
        std::string("; it is kept as ") + aside);
    ::close(*fd);
    fd = open_locked(path);
    if (!fd) return Failure{fd.error()};
    lines.clear();
    torn = false;
  }
  TrialLog log(*fd, path);
  try {
    // A torn header is removed; any other torn line is ended and stays as one that is not understood.
    if (lines.empty() && ::ftruncate(log.fd_, 0) != 0) throw Error(system_failure("cannot write to the trial log", path));
    if (lines.empty())
      log.append(header_json(header).dump());
    else if (torn)
      log.append("");
  } catch (const Error& error) {
    return Failure{error.what()};
  }
  log.evidence_ = read_lines(lines);
  return log;
}

Evidence& TrialLog::of(const Problem& problem) { return evidence_of(problem, evidence_); }

void TrialLog::append(const std::string& line) {
  const std::string text = line + "\n";
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(fd_, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      has_everything_ = false;
      throw Error(system_failure("cannot write to the trial log", path_));
    }
    written += static_cast<size_t>(count);
  }
}

void TrialLog::add(const Trial& trial) {
  append(trial_json(trial).dump(-1, ' ', false, Json::error_handler_t::replace));
  of(trial.problem).trials.push_back(trial);
}

void TrialLog::add_baselines(const Problem& problem, const BaselineTimes& times) {
  append(Json{{"timestamp", utc_timestamp()},
              {"problem", to_json(problem)},
              {"cublas_us", times.cublas_us},
              {"cublaslt_best_us", times.cublaslt_best_us},
              {"cublaslt_algorithm", times.cublaslt_algorithm}}
             .dump());
  of(problem).baselines = times;
}

void TrialLog::finish(const Problem& problem) {
  append(Json{{"timestamp", utc_timestamp()}, {"problem", to_json(problem)}, {"finished", true}, {"skipped", ""}}.dump());
  of(problem).finished = true;
}

void TrialLog::skip(const Problem& problem, const std::string& why) {
  append(Json{{"timestamp", utc_timestamp()}, {"problem", to_json(problem)}, {"finished", false}, {"skipped", why}}.dump(
      -1, ' ', false, Json::error_handler_t::replace));
  of(problem).skipped = why;
}

}  // namespace gemm
