#include "tuner/tuner.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>

#include "dispatch/cost_model.h"
#include "dispatch/selector.h"
#include "dispatch/table.h"
#include "kernels/kernel_spec.h"
#include "tuner/calibration_run.h"
#include "tuner/inspect_report.h"
#include "tuner/interrupt.h"
#include "tuner/point_tuner.h"
#include "tuner/portfolio.h"
#include "tuner/table_builder.h"
#include "tuner/table_files.h"

namespace gemm {
namespace {

using Clock = std::chrono::steady_clock;

// Problems whose kernels are compiled ahead. Some need fifty new ones and some none, and some keep the GPU busy for seconds.
// On an H200, 187 problems took 408 s with 6, 310 s with 16, which kept 12 compilers busy nearly all the time, and 311 s
// with 24 and 15 compilers. The kernels of 32 would at times be more than may be loaded (BuildCache).
constexpr size_t kPrefetchedPoints = 24;
constexpr size_t kNeighbours = 3;      // tuned problems whose winners are tried too
constexpr double kTableSeconds = 30;   // between two writes of the table while tuning
constexpr size_t kPortfolioTries = 3;  // portfolio kernels measured for a point whose own kernels are not in it
// Calibration gets this share of a budget, but not more than it needs.
constexpr double kCalibrationShare = 0.3;
constexpr double kCalibrationMinutes = 5;

// One run of the tuner, from a worker that answers to the table.
class TuneRun {
 public:
  TuneRun(const TuneOptions& options, WorkerSession& session, const Reply& hello, std::string path, Table older,
          TrialLog log, const std::vector<KernelConfig>& configs)
      : options_(options),
        session_(session),
        device_(hello.device),
        environment_(hello.environment),
        path_(std::move(path)),
        older_(std::move(older)),
        log_(std::move(log)),
        ranker_(device_, configs, options.space.extra, options.candidates),
        calibration_(session, log_, device_, static_cast<size_t>(options.calibration), options.terminal,
                     [this] { return stopped(); }) {
    for (const Shape& shape : options.shapes) candidates_.push_back(ranker_.candidates(shape.problem));
    session_.on_restart = [this] { prefetched_ = current_, prefetch(); };
  }

  int run() {
    size_t left = 0;
    for (const Shape& shape : options_.shapes) left += !log_.evidence(shape.problem).finished;
    if (left < options_.shapes.size())
      std::fprintf(stderr, "%zu of %zu shapes are done already (--fresh measures them again)\n",
                   options_.shapes.size() - left, options_.shapes.size());
    try {
      Progress progress(options_.terminal, left);
      PointTuner tuner(session_, log_, progress, device_, [this] { return stopped_tuning(); });
      tune_points(tuner, progress);
      if (!stopped_tuning()) complete_portfolio(tuner);
      if (options_.calibration > 0 && !stopped()) calibrate(tuner);
    } catch (const Error& error) {
      std::fprintf(stderr, "error: %s\n", error.what());
      failed_ = true;
    }
    if (!finish_table()) return 1;
    report();
    if (interrupt_signal() != 0) return 128 + interrupt_signal();
    const bool all_skipped = !options_.shapes.empty() && skipped_shapes() == options_.shapes.size();
    return failed_ || all_skipped ? 1 : 0;
  }

 private:
  // Of the budget, where there is one.
  bool spent(double minutes) const {
    return options_.budget_minutes > 0 && std::chrono::duration<double>(Clock::now() - start_).count() / 60 >= minutes;
  }
  bool stopped() const { return interrupt_signal() != 0 || spent(options_.budget_minutes); }
  bool stopped_tuning() const {
    const double budget = options_.budget_minutes;
    const double kept = options_.calibration > 0 ? std::min(kCalibrationShare * budget, kCalibrationMinutes) : 0;
    return interrupt_signal() != 0 || spent(budget - kept);
  }

  void tune_points(PointTuner& tuner, Progress& progress) {
    Clock::time_point written = Clock::now();
    for (current_ = 0; current_ < options_.shapes.size() && !stopped_tuning(); ++current_) {
      const Problem& problem = options_.shapes[current_].problem;
      if (log_.evidence(problem).finished) continue;
      prefetch();
      std::vector<Choice> candidates = candidates_[current_];
      add_neighbours(problem, candidates);
      if (!tuner.tune(problem, candidates)) return;
      progress.point_done();
      if (std::chrono::duration<double>(Clock::now() - written).count() < kTableSeconds) continue;
      write_points();
      written = Clock::now();
    }
  }

  // Hands the kernels of the next unfinished points to the background compilers.
  void prefetch() {
    for (prefetched_ = std::max(prefetched_, current_);
         prefetched_ < std::min(options_.shapes.size(), current_ + kPrefetchedPoints); ++prefetched_) {
      const Problem& problem = options_.shapes[prefetched_].problem;
      if (!log_.evidence(problem).finished) session_.prefetch(problem, candidates_[prefetched_]);
    }
  }

  // Winners of the nearest tuned problems with the same ops.
  std::vector<KernelConfig> nearest_winners(const Problem& problem) const {
    std::vector<std::pair<double, KernelConfig>> winners;
    for (const auto& [name, evidence] : log_.evidence()) {
      const Problem& other = evidence.problem;
      if (!evidence.finished || other == problem || other.op_a != problem.op_a || other.op_b != problem.op_b) continue;
      const PointResult result = evaluate(evidence);
      if (!result.options.empty()) winners.emplace_back(distance(problem, other), result.options.front().choice.config);
    }
    std::stable_sort(winners.begin(), winners.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<KernelConfig> nearest;
    for (size_t i = 0; i < std::min(kNeighbours, winners.size()); ++i) nearest.push_back(winners[i].second);
    return nearest;
  }

  // Those, with the split that suits this problem; and on copies of its operands those of problems like the copies.
  void add_neighbours(const Problem& problem, std::vector<Choice>& candidates) const {
    const auto add = [&](const std::optional<PredictedChoice>& best) {
      if (best && std::find(candidates.begin(), candidates.end(), best->choice) == candidates.end())
        candidates.push_back(best->choice);
    };
    for (const KernelConfig& winner : nearest_winners(problem)) add(ranker_.best_split(winner, problem));
    for (const Relayout relayout : relayouts_of(problem, device_))
      for (const KernelConfig& winner : nearest_winners(relaid_problem(relayout, problem)))
        if (gains_by_relayout(winner)) add(best_on_copies(winner, relayout, problem, device_, kWorkspaceBytes));
  }

  // Of finished problems, and of those where only cuBLAS was right.
  std::vector<PointResult> points() const {
    std::vector<PointResult> results;
    for (const auto& [name, evidence] : log_.evidence())
      if (evidence.finished || (!evidence.baselines.cublas_us.empty() && !evidence.only_calibration()))
        results.push_back(evaluate(evidence));
    return with_older_points(std::move(results), older_);
  }

  std::set<std::string> portfolio_for(const std::vector<PointResult>& points, const std::vector<PointResult>& survey) const {
    return select_portfolio(points, survey, pool_.empty() ? portfolio_pool(points, survey, kMostPortfolioKernels) : pool_,
                            kMostPortfolioKernels);
  }

  // Points that the portfolio serves with a kernel that was no finalist there get it measured.
  void complete_portfolio(PointTuner& tuner) {
    const std::vector<PointResult> results = points();
    const std::set<std::string> portfolio = portfolio_for(results, calibration_.surveyed());
    for (const PointResult& result : results) {
      const PointOption* option = served_by(result, portfolio);
      if (result.options.empty() || (option != nullptr && option->stage == Stage::finals)) continue;
      std::vector<Choice> choices;
      for (const PointOption& other : result.options)
        if (portfolio.count(config_id(other.choice.config)) != 0 && choices.size() < kPortfolioTries)
          choices.push_back(other.choice);
      if (choices.empty()) choices = predicted_best(result.problem, portfolio);
      if (!tuner.measure_finally(result.problem, choices)) return;
    }
  }

  void calibrate(PointTuner& tuner) {
    if (!write_points()) return;
    pool_ = portfolio_pool(points(), calibration_.surveyed(), kMostPortfolioKernels);
    std::vector<KernelConfig> kernels;
    for (const std::string& id : pool_) kernels.push_back(config_from_id(id).value());
    calibration_.survey(kernels);
    if (stopped()) return;
    complete_portfolio(tuner);
    if (!write_points() || stopped()) return;
    calibration_.time_favourites(table_);
    if (stopped()) return;
    fit();
    certify();
    if (save() && !keeps_older_model_) calibration_.hold_contests(table_);
  }

  std::vector<Choice> predicted_best(const Problem& problem, const std::set<std::string>& portfolio) const {
    std::vector<std::pair<double, Choice>> ranked;
    for (const std::string& id : portfolio)
      if (const auto choice = ranker_.best_split(config_from_id(id).value(), problem))
        ranked.emplace_back(choice->us, choice->choice);
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Choice> best;
    for (size_t i = 0; i < std::min(kPortfolioTries, ranked.size()); ++i) best.push_back(ranked[i].second);
    return best;
  }

  Table table_of(const std::vector<PointResult>& points) const {
    const std::vector<PointResult> survey = calibration_.surveyed();
    return make_table(device_, environment_, options_.command_line, points, portfolio_for(points, survey), survey);
  }

  // With a model of what calibration has by now, or of the older table where that has seen far more
  // (keep_older_calibration).
  void fit() {
    const std::vector<PointResult> tuned = points();
    table_ = table_of(tuned);
    fit_table(table_, calibration_.results(), tuned);
    fitted_problems_ = table_.learned_model ? table_.learned_model->problems : 0;
    is_fitted_ = true;
    keeps_older_model_ = keep_older_calibration(table_, older_);
  }

  // With the contests that were held by now.
  void certify() {
    if (keeps_older_model_) return;
    const CalibrationResults results = calibration_.results();
    certify_table(table_, results);
    uncertified_ = results.certificate.size();
    if (!table_.certificate) return;
    for (const auto& group : {table_.certificate->box, table_.certificate->outside})
      if (group) uncertified_ -= static_cast<size_t>(group->problems);
  }

  bool save() const {
    const Result<bool> saved = save_table(table_, path_);
    if (!saved)
      std::fprintf(stderr, "error: %s; the trial log %s, run the same command again\n", saved.error().c_str(),
                   log_.has_everything() ? "has all results" : "has the results up to its own failure");
    return saved.ok();
  }

  // What there is until calibration is done.
  bool write_points() {
    table_ = table_of(points());
    keep_older_calibration(table_, older_);
    return save();
  }

  bool finish_table() {
    if (!is_fitted_) fit();
    certify();
    return save();
  }

  // Shapes that this run tried and could not tune.
  size_t skipped_shapes() {
    size_t skipped = 0;
    for (const Shape& shape : options_.shapes) skipped += !log_.evidence(shape.problem).skipped.empty();
    return skipped;
  }

  void report() {
    const size_t skipped = skipped_shapes();
    size_t unfinished = 0;
    for (const Shape& shape : options_.shapes) unfinished += !log_.evidence(shape.problem).finished;
    unfinished -= skipped;
    size_t cublas = 0;
    for (const TablePoint& point : table_.points) cublas += point.use_cublas;
    std::fprintf(stderr, "%s: %zu points (%s), %zu kernels, cuBLAS is faster for %zu\n", path_.c_str(), table_.points.size(),
                 table_.provenance.c_str(), table_.portfolio.size(), cublas);
    if (table_.certificate) std::fputs(certificate_text(*table_.certificate).c_str(), stderr);
    if (uncertified_ > 0)
      std::fprintf(
          stderr,
          "%zu more problems are not in the certificate: the selector's choice does not run there, or the run ended "
          "before it was timed\n",
          uncertified_);
    if (unfinished > 0)
      std::fprintf(stderr, "%zu shapes are not done yet; %s goes on where this one stopped\n", unfinished, going_on());
    if (skipped > 0)
      std::fprintf(stderr, "%zu shapes were skipped: reasons above; the same command tries them again\n", skipped);
    report_calibration();
    if (session_.restarts() > 0) std::fprintf(stderr, "the worker was started again %d times\n", session_.restarts());
  }

  void report_calibration() {
    const size_t open = calibration_.open_problems();
    size_t without_traits = 0;
    for (const PortfolioKernel& kernel : table_.portfolio) without_traits += kernel.traits.empty();
    if (stopped() && open > 0)
      std::fprintf(stderr, "calibration has %zu random problems left; %s goes on where this one stopped\n", open,
                   going_on());
    if (!table_.learned_model && options_.calibration > 0)
      std::fprintf(stderr, "no model could be fitted: the selector has nothing but the tuned points\n");
    if (keeps_older_model_)
      std::fprintf(
          stderr,
          "the older table's model is kept: it was fitted to %d random problems, and this run has %d; %zu of %zu kernels "
          "are not in it. One of at least half as many replaces it: %s where this one was stopped, else a larger "
          "--calibration\n",
          table_.learned_model->problems, fitted_problems_, without_traits, table_.portfolio.size(), going_on());
  }

  // --fresh would begin again.
  const char* going_on() const { return options_.fresh ? "the same command without --fresh" : "the same command"; }

  const TuneOptions& options_;
  WorkerSession& session_;
  DeviceInfo device_;
  std::map<std::string, std::string> environment_;
  std::string path_;
  Table older_;
  TrialLog log_;
  CandidateRanker ranker_;
  std::vector<std::vector<Choice>> candidates_;  // of each shape
  CalibrationRun calibration_;
  std::set<std::string> pool_;  // what is surveyed, and the portfolio chosen from; empty before
  size_t current_ = 0, prefetched_ = 0;
  Clock::time_point start_ = Clock::now();
  Table table_;
  bool is_fitted_ = false;   // to all that calibration has
  int fitted_problems_ = 0;  // of the model, before an older table's was kept
  bool keeps_older_model_ = false;
  size_t uncertified_ = 0;  // problems of the certificate on which the selector's choice was not timed
  bool failed_ = false;
};

}  // namespace

std::string no_valid_configs(const DeviceInfo& device) {
  return "every configuration of the search space is out on " + device.name + "; gemm-tune --list says why";
}

int tune(const TuneOptions& options) {
  record_interrupts();
  try {
    WorkerSession session(options.worker_command, options.timeout_s);
    Result<Reply> hello = session.start();
    if (!hello && interrupt_signal() != 0) return 128 + interrupt_signal();
    const Reply worker = std::move(hello).value_or_throw();
    const DeviceInfo& device = worker.device;
    if (!worker.message.empty()) std::fprintf(stderr, "%s\n", worker.message.c_str());
    const std::vector<KernelConfig> configs = valid_configs(options.space, device.limits);
    if (configs.empty()) throw Error(no_valid_configs(device));
    const std::string path = without_links(options.table_path.empty() ? default_table_path(device) : options.table_path);
    Table older = older_table(path, device);
    std::vector<std::string> messages;
    TrialLog log = TrialLog::open(log_path(path), log_header(device, configs), options.fresh, &messages).value_or_throw();
    for (const std::string& message : messages) std::fprintf(stderr, "%s\n", message.c_str());
    std::fprintf(stderr, "tuning %zu shapes on %s with %zu configurations; table %s, trial log %s\n", options.shapes.size(),
                 device_identity(device).c_str(), configs.size(), path.c_str(), log_path(path).c_str());
    return TuneRun(options, session, worker, path, std::move(older), std::move(log), configs).run();
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}

}  // namespace gemm
