// The table: what tuning found for one GPU, and what dispatch reads. docs/table-format.md is its description for people,
// configs/table.schema.json its schema.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/learned_model.h"
#include "kernels/device.h"
#include "kernels/launch.h"
#include "kernels/problem.h"
#include "kernels/result.h"

namespace gemm {

inline constexpr int kTableVersion = 1;

// Robust statistics of one time measurement.
struct TimeStats {
  double median = 0, p20 = 0, p80 = 0;  // microseconds
  int n = 0;                            // samples
};

// A kernel of the portfolio, with what its compilation reported for the op pair it was measured with.
struct PortfolioKernel {
  std::string id;  // config_id(config)
  KernelConfig config;
  int registers = 0;
  int spill_bytes = 0;
  int shared_bytes = 0;
  int threads = 0;
  // What the networks of the learned model know it by, one vector for each; in older tables model_factor, one factor for the
  // whole prediction. Kernels that have either are chosen by predicted time for problems that were not tuned.
  std::vector<FirstLayer> traits;
  std::optional<double> model_factor;
};

// One tuned problem. Problems are packed (smallest leading dimensions).
struct TablePoint {
  Problem problem;
  bool use_cublas = false;  // cuBLAS was faster than every kernel, or no kernel was valid
  std::string kernel;       // portfolio id; the best own kernel also where use_cublas; empty if none was valid
  int split_k = 1;
  Reduction reduction = Reduction::ticket;
  Relayout relayout = Relayout::none;  // older tables do not say it
  TimeStats time_us;                   // of that kernel
  double tflops = 0;
  std::optional<double> cublas_us;  // medians, same run, interleaved; absent on the emulated device
  std::optional<double> cublaslt_best_us;
  double max_scaled_error = 0;    // worst |error| / bound; at most 1
  std::vector<std::string> ties;  // to_string(Choice) of candidates within 0.5 % or the error margin, in fixed order
};

// What the point runs with its kernel's configuration.
Choice choice_of(const TablePoint& point, const KernelConfig& config);

// How good the selector's choice was on random problems that took no part in fitting it.
struct CertificateGroup {
  int problems = 0;
  // Best time of the portfolio / time of the choice, 1 where cuBLAS was chosen and is faster: geometric mean, 5th percentile
  // and the smallest.
  double of_best = 0, of_best_p5 = 0, worst = 0;
  Problem worst_problem;
  // Geometric means; absent on the emulated device.
  std::optional<double> over_cublas;        // cuBLAS's time / time of the choice
  std::optional<double> of_best_or_cublas;  // like of_best, but with cuBLAS among those that can be best
  int cublas_chosen = 0;
};
struct Certificate {
  std::optional<CertificateGroup> box;      // each of m, n, k drawn alike; one matrix
  std::optional<CertificateGroup> outside;  // skinny, deep, shallow, tall, batches
};

struct Table {
  int version = kTableVersion;
  DeviceInfo device;
  std::string provenance;                          // "measured" or "modelled"
  std::map<std::string, std::string> environment;  // driver, cuda_runtime, nvrtc, cublas, host, gemm_version, command, date
  std::map<std::string, std::string> method;       // how times were taken, in words and numbers
  std::vector<PortfolioKernel> portfolio;          // by id
  std::vector<TablePoint> points;                  // by ops, batch, m, n, k
  std::optional<LearnedModel> learned_model;       // what calibration fitted
  std::optional<Certificate> certificate;
  // Of the best time with the whole portfolio, what its first 1, 2, … kernels reach, taken in the order in which each adds
  // most: geometric mean over the certificate's problems.
  std::vector<double> portfolio_curve;

  const PortfolioKernel* find_kernel(const std::string& id) const;
};

// Reading never throws: entries that cannot be used are left out and reported once each in *warnings.
Result<Table> parse_table(const std::string& text, std::vector<std::string>* warnings);
Result<Table> load_table(const std::string& path, std::vector<std::string>* warnings);

// Stable order and number format, one point per line.
std::string to_json(const Table& table);

// Writes to a temporary file in the same folder and renames it, so that readers only ever see a whole table.
Result<bool> save_table(const Table& table, const std::string& path);

// How well a table fits a device: exact (same compute capability, SM count and provenance, memory within 5 %), borrowed
// (same compute capability or older, so its kernels may run), or unusable.
enum class TableMatch { exact, borrowed, unusable };
TableMatch match(const Table& table, const DeviceInfo& device);

}  // namespace gemm
