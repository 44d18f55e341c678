// What the networks are told of choices (docs/table-format.md lists it). A template on the number, as the cost model is: N
// is a double, for one choice, or Lanes, for eight of one problem side by side. Only for learned_model.cpp.
#pragma once

#include <bit>
#include <cstdint>

#include "dispatch/cost_model.h"
#include "dispatch/lanes.h"
#include "dispatch/learned_model.h"

namespace gemm {

// log2 to within 0.01, far below what matters: std::log2 takes a share of a microsecond.
inline double coarse_log2(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const auto exponent = static_cast<int>(bits >> 52) - 1023;
  const auto mantissa = std::bit_cast<double>((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  return exponent + (mantissa * (-1.0 / 3) + 2) * mantissa - 5.0 / 3;
}
template <size_t kWidth>
GEMM_INLINE Lanes<kWidth> coarse_log2(const Lanes<kWidth>& x) {
  Lanes<kWidth> exponent, mantissa;
  x.take_apart(exponent, mantissa);
  return exponent + (mantissa * (-1.0 / 3) + 2.0) * mantissa - 5.0 / 3;
}

// What the inputs are made of: numbers of the kernel, and what the cost model says.
template <class N>
struct ChoiceNumbers {
  N BM, BN, BK;
  cost::DivisorOf<N> by_BM, by_BN;
  cost::Terms<N> terms;
  N us, split, how;  // `how` is the number of a Reduction
};

// Inputs: kFirstShare of sizes, shares of the time and the time itself, and the rest.
inline constexpr size_t kFirstShare = 5, kShareInputs = 6, kRest = 8;
static_assert(kFirstShare + kShareInputs + kRest == kChoiceInputs);

template <class N>
void write_shares(const cost::Terms<N>& terms, const N& us, N* inputs) {
  const N share = 1.0 / us;
  const N* const parts[] = {&terms.fixed, &terms.compute, &terms.memory, &terms.latency, &terms.reduction};
  for (const N* part : parts) *inputs++ = *part * share;
  *inputs = coarse_log2(us);
}

// Writes kChoiceInputs of them.
template <class N>
void write_choice_inputs(const ChoiceNumbers<N>& c, const CostProblem& p, double sm_count, N* inputs) {
  const N m = p.m, n = p.n, k = p.k;
  const N tiles_m = c.by_BM.parts(m), tiles_n = c.by_BN.parts(n);
  const N rows = tiles_m * c.BM, columns = tiles_n * c.BN;
  const N tiles = tiles_m * tiles_n * p.batch, blocks = tiles * c.split;
  const N stages = cost::DivisorOf<N>(c.split * c.BK).parts(k);  // of a block
  const N waves = cost::DivisorOf<N>(sm_count).parts(blocks) * sm_count / blocks;
  using cost::where;
  const auto is = [](const auto& condition) { return where(condition, N(1.0), N(0.0)); };
  const auto is_how = [&](Reduction reduction) { return is(c.how == static_cast<double>(reduction)); };
  const N sizes[kFirstShare] = {coarse_log2(tiles), coarse_log2(c.split), coarse_log2(stages),
                                coarse_log2(rows * columns / (m * n)), coarse_log2(waves)};
  for (const N& input : sizes) *inputs++ = input;
  write_shares(c.terms, c.us, inputs);
  inputs += kShareInputs;
  const N rest[kRest] = {is(rows != m),
                         is(columns != n),
                         is(stages * c.BK * c.split != k),
                         is_how(Reduction::kernel),
                         is_how(Reduction::stream_k),
                         is_how(Reduction::cluster),
                         (rows - m) / c.BM,
                         (columns - n) / c.BN};
  for (const N& input : rest) *inputs++ = input;
}

}  // namespace gemm
