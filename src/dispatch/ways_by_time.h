// What a search for kernels found, to be taken fastest first.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <span>

#include "dispatch/kernel_search.h"

namespace gemm {

// The ways in which all kernels may serve all products, in groups, and their times, to be taken least first.
template <size_t kMostGroups>
class WaysByTime {
 public:
  struct Origin {
    size_t product, group;
  };
  std::array<GroupWays, kMostGroups> groups;
  std::array<Origin, kMostGroups> origins;
  size_t count = 0;

  // Takes over the next group, of which so many kernels matter.
  void add(const Origin& origin, size_t kernels, float copies_us) {
    origins[count] = origin;
    for (size_t lane = 0; lane < kKernelsAtOnce; ++lane) {
      const float us = groups[count].us[lane] + copies_us;
      const auto number = static_cast<int>(count * kKernelsAtOnce + lane);
      keys_[count][lane] = lane < kernels && us < std::numeric_limits<float>::infinity()
                               ? (std::bit_cast<int>(us) & ~kNumbers) | number
                               : kTaken;
    }
    least_keys_[count] = least(keys_[count]);
    least_key_ = std::min(least_key_, least_keys_[count]);
    ++count;
  }

  // The least time of all, or infinite.
  double least_us() const {
    return least_key_ == kTaken ? std::numeric_limits<double>::infinity() : double{std::bit_cast<float>(least_key_)};
  }

  // The number of the fastest one that is left, if it takes no longer: group * kKernelsAtOnce + lane.
  std::optional<size_t> take(double hopeless_us) {
    const int key = least(std::span(least_keys_).first(count));
    if (key == kTaken || double{std::bit_cast<float>(key)} > hopeless_us) return std::nullopt;
    const auto number = static_cast<size_t>(key & kNumbers), group = number / kKernelsAtOnce;
    keys_[group][number % kKernelsAtOnce] = kTaken;
    least_keys_[group] = least(keys_[group]);
    return number;
  }

 private:
  // Positive floats are in order as integers too, and their last bits hold the number. The least is found without branches,
  // which no CPU could foresee.
  static constexpr int kNumbers = static_cast<int>(std::bit_ceil(kMostGroups * kKernelsAtOnce)) - 1;
  static constexpr int kTaken = std::numeric_limits<int>::max();
  static int least(std::span<const int> keys) {
    int least = kTaken;
#pragma GCC unroll 8
    for (const int key : keys) least = key < least ? key : least;
    return least;
  }

  std::array<std::array<int, kKernelsAtOnce>, kMostGroups> keys_;
  std::array<int, kMostGroups> least_keys_;  // of each group
  int least_key_ = kTaken;                   // that any had
};

}  // namespace gemm
