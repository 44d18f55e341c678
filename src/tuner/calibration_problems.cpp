#include "tuner/calibration_problems.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string_view>

namespace gemm {
namespace {

constexpr unsigned kSeed = 20261130;
constexpr double kMostFlops = 1.4e11;  // 2.6 ms at the peak of an H200: a few such problems, since most are far smaller
constexpr double kMostBytes = 1e9;
// For the fit and for the certificate, from the box (capitals) or from outside: 4 + 2 + 4 + 1 of 11, which makes a
// certificate of 200 + 50 problems. What comes after those is for the fit.
constexpr std::string_view kOrder = "FCfCFcFCfFC", kLaterOrder = "FFf";
constexpr size_t kLater = 550;
// Replayed from the log of an H200 with 850 surveyed problems and 3,300 of favourites: with half the survey choices were
// 0.24 % slower, with half the favourites 0.31 %; and a problem of the survey takes four to six times as long.
constexpr size_t kSurveyed = 800, kTinySurveyed = 8;  // of 11 tiny ones two are left for favourites

// Shares of the problems. A kernel is compiled for each pair of alignments, so 8-byte ones, between the others, are rare.
constexpr double kAllAligned = 0.45, kOfEachAlignment = 0.92;

// Lengths that a kind of problem is drawn from.
struct Range {
  int64_t low, high;
};
struct Kind {
  Range m, n, k, batch;
};
constexpr Kind kBox = {{16, 9000}, {16, 9000}, {16, 9000}, {1, 1}};
constexpr Kind kOutside[] = {
    // skinny
    {{256, 12000}, {1, 16}, {256, 12000}, {1, 1}},
    {{1, 16}, {256, 12000}, {256, 12000}, {1, 1}},
    // deep, shallow
    {{16, 512}, {16, 512}, {4096, 65536}, {1, 1}},
    {{500, 6000}, {500, 6000}, {4, 64}, {1, 1}},
    // large, which are rare in the box
    {{1024, 5000}, {1024, 5000}, {1024, 5000}, {1, 1}},
    // tall, wide
    {{16384, 2000000}, {4, 256}, {8, 512}, {1, 1}},
    {{4, 256}, {16384, 2000000}, {8, 512}, {1, 1}},
    // batches, tiny ones first: they have kernels of their own, of which the model must see something
    {{4, 16}, {4, 16}, {4, 64}, {256, 4096}},
    {{4, 64}, {4, 64}, {4, 64}, {64, 4096}},
    {{32, 256}, {32, 256}, {32, 256}, {8, 512}},
    {{64, 1024}, {64, 1024}, {32, 256}, {4, 64}},
    {{64, 128}, {1, 8}, {64, 1024}, {32, 1024}},
};
// What the emulated device can run in a moment.
constexpr Kind kTinyBox = {{2, 48}, {2, 48}, {2, 48}, {1, 1}};
constexpr Kind kTinyOutside[] = {{{2, 24}, {1, 4}, {2, 64}, {1, 1}}, {{2, 16}, {2, 16}, {2, 16}, {2, 4}}};

class Draw {
 public:
  // In [0, 1), from the generator's bits: the standard distributions differ between libraries.
  double uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  template <size_t N>
  const Kind& one_of(const Kind (&kinds)[N]) {
    return kinds[static_cast<size_t>(uniform() * N)];
  }

  Problem problem(const Kind& kind) {
    // Lengths that fit 16 bytes; lengths of which each fits 16 bytes or only 4; any length.
    const double alignment = uniform();
    const auto length = [&](const Range& range) {
      const int64_t any = log_uniform(range);
      const bool odd = uniform() < 0.5;
      if (range.high < 4 || alignment > kOfEachAlignment) return any;
      if (alignment > kAllAligned && odd) return any | 1;
      return std::clamp<int64_t>((any + 2) / 4 * 4, 4, range.high / 4 * 4);
    };
    const int64_t m = length(kind.m), n = length(kind.n), k = length(kind.k);
    const Op a = uniform() < 0.5 ? Op::N : Op::T, b = uniform() < 0.5 ? Op::N : Op::T;
    return packed_problem(m, n, k, a, b, log_uniform(kind.batch));
  }

 private:
  int64_t log_uniform(const Range& range) {
    const double low = std::log(static_cast<double>(range.low)), high = std::log(static_cast<double>(range.high) + 1);
    return std::clamp(static_cast<int64_t>(std::exp(low + (high - low) * uniform())), range.low, range.high);
  }

  std::mt19937_64 bits_{kSeed};
};

}  // namespace

std::vector<CalibrationProblem> calibration_problems(size_t count, bool tiny) {
  std::vector<CalibrationProblem> problems;
  std::set<std::string> seen;
  Draw draw;
  while (problems.size() < count) {
    const std::string_view order = problems.size() < kLater ? kOrder : kLaterOrder;
    const char role = order[problems.size() % order.size()];
    const bool box = role == 'F' || role == 'C';
    const Kind& outside = tiny ? draw.one_of(kTinyOutside) : draw.one_of(kOutside);
    const Problem problem = draw.problem(!box ? outside : tiny ? kTinyBox : kBox);
    if (problem.flops() > kMostFlops || problem.bytes() > kMostBytes || !seen.insert(to_string(problem)).second) continue;
    const bool certificate = role == 'C' || role == 'c';
    problems.push_back({problem, certificate, box, certificate || problems.size() < (tiny ? kTinySurveyed : kSurveyed)});
  }
  return problems;
}

}  // namespace gemm
