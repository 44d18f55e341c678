// Runs one product on a device and checks it on the host: FP64 reference, poisoned C, NaN in every gap, buffers that end at
// the last element. Shared by the emulated and the GPU tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/launch.h"
#include "kernels/problem.h"

namespace gemm::test {

struct ProductCase {
  Choice choice{};
  Problem problem{};
  float alpha = 1, beta = 0;
  int offset_a = 0, offset_b = 0, offset_c = 0;  // floats that each pointer is moved from 256-byte alignment
  bool ones = false;                             // all operands 1, so that every result is exactly alpha * k
  Epilogue epilogue = Epilogue::none;
  bool shared_bias = false;  // one for the whole batch
};

inline std::string to_string(const ProductCase& c) {
  return to_string(c.problem) + " " + to_string(c.choice) + " alpha " + std::to_string(c.alpha) + " beta " +
         std::to_string(c.beta) + " offsets " + std::to_string(c.offset_a) + "," + std::to_string(c.offset_b) + "," +
         std::to_string(c.offset_c) + " epilogue " + to_string(c.epilogue) + (c.shared_bias ? ", shared bias" : "");
}

// `rows` x `columns` x batch values; everything that is not an element is NaN.
struct HostMatrix {
  std::vector<float> data;
  int64_t ld = 0, stride = 0;

  float& at(int64_t row, int64_t column, int64_t batch) {
    return data[static_cast<size_t>(batch * stride + column * ld + row)];
  }
  float at(int64_t row, int64_t column, int64_t batch) const {
    return data[static_cast<size_t>(batch * stride + column * ld + row)];
  }
};

inline HostMatrix random_matrix(int64_t rows, int64_t columns, int64_t ld, int64_t stride, int64_t batch, int64_t extent,
                                bool ones, unsigned seed) {
  HostMatrix matrix{std::vector<float>(static_cast<size_t>(extent), std::numeric_limits<float>::quiet_NaN()), ld, stride};
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i) matrix.at(i, j, b) = ones ? 1.0f : uniform(random);
  return matrix;
}

// A device copy of a host matrix that starts `offset` floats into its allocation and ends with the allocation.
inline Buffer upload(Device& device, const HostMatrix& matrix, int offset) {
  std::vector<float> padded(static_cast<size_t>(offset), std::numeric_limits<float>::quiet_NaN());
  padded.insert(padded.end(), matrix.data.begin(), matrix.data.end());
  Buffer buffer = device.allocate(std::max<size_t>(padded.size(), 1) * sizeof(float)).value_or_throw();
  device.copy_to_device(buffer.as(), padded.data(), padded.size() * sizeof(float));
  return buffer;
}

inline uint32_t bits(float x) {
  uint32_t word;
  std::memcpy(&word, &x, sizeof word);
  return word;
}

// The bias of a case: vectors of m numbers, with a gap between them, as matrices of one column.
inline HostMatrix random_bias(const ProductCase& c) {
  const Problem& p = c.problem;
  const int64_t stride = c.shared_bias ? 0 : p.m + 3;
  return random_matrix(p.m, 1, p.m, stride, p.batch, (p.batch - 1) * stride + p.m, false, 4);
}

// Why `after` is not alpha * op(A) * op(B) + beta * before with the epilogue, or an empty string.
inline std::string why_wrong(const ProductCase& c, const HostMatrix& a, const HostMatrix& b, const HostMatrix& before,
                             const HostMatrix& after, const HostMatrix& bias = {}) {
  const Problem& p = c.problem;
  std::vector<bool> inside(before.data.size(), false);
  for (int64_t batch = 0; batch < p.batch; ++batch)
    for (int64_t j = 0; j < p.n; ++j)
      for (int64_t i = 0; i < p.m; ++i) {
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < p.k && c.alpha != 0; ++k) {
          const double product = static_cast<double>(p.op_a == Op::N ? a.at(i, k, batch) : a.at(k, i, batch)) *
                                 static_cast<double>(p.op_b == Op::N ? b.at(k, j, batch) : b.at(j, k, batch));
          sum += product;
          magnitude += std::fabs(product);
        }
        const double old = c.beta == 0 ? 0 : static_cast<double>(c.beta) * static_cast<double>(before.at(i, j, batch));
        const double added = has_bias(c.epilogue) ? static_cast<double>(bias.at(i, 0, batch)) : 0;
        double expected = static_cast<double>(c.alpha) * sum + old + added;
        if (has_relu(c.epilogue)) expected = std::max(expected, 0.0);
        const double error = std::fabs(static_cast<double>(after.at(i, j, batch)) - expected);
        const double bound = c.ones ? 0
                                    : 5.97e-8 * ((4 + 2 * std::sqrt(static_cast<double>(p.k))) *
                                                     std::fabs(static_cast<double>(c.alpha)) * magnitude +
                                                 4 * std::fabs(old) + 4 * std::fabs(added)) +
                                          1e-36;
        if (!(error <= bound))
          return "C(" + std::to_string(i) + "," + std::to_string(j) + ") of matrix " + std::to_string(batch) + " is " +
                 std::to_string(after.at(i, j, batch)) + ", expected " + std::to_string(expected);
        inside[static_cast<size_t>(batch * before.stride + j * before.ld + i)] = true;
      }
  for (size_t i = 0; i < inside.size(); ++i)
    if (!inside[i] && bits(before.data[i]) != bits(after.data[i]))
      return "word " + std::to_string(i) + " outside C was written";
  return {};
}

// Runs the case twice into fresh, poisoned Cs. Returns why it is wrong or not repeatable, or an empty string.
inline std::string check_product(Device& device, const ProductCase& c) {
  const Problem& p = c.problem;
  if (const std::string why = why_illegal(c.choice, p, device.info(), kWorkspaceBytes); !why.empty())
    return "illegal: " + why;
  const HostMatrix a = random_matrix(p.rows_a(), p.columns_a(), p.lda, p.stride_a, p.batch, p.extent_a(), c.ones, 1);
  const HostMatrix b = random_matrix(p.rows_b(), p.columns_b(), p.ldb, p.stride_b, p.batch, p.extent_b(), c.ones, 2);
  HostMatrix before = random_matrix(p.m, p.n, p.ldc, p.stride_c, p.batch, p.extent_c(), false, 3);
  if (c.beta == 0) std::fill(before.data.begin(), before.data.end(), std::numeric_limits<float>::quiet_NaN());

  const Buffer device_a = upload(device, a, c.offset_a), device_b = upload(device, b, c.offset_b);
  // Aligned to 4 bytes only, which is all that a bias has to be.
  const HostMatrix bias = random_bias(c);
  const Buffer device_bias = upload(device, bias, 1);
  const int64_t workspace_size = workspace_bytes(c.choice, p, device.info().sm_count);
  const Buffer workspace = device.allocate(static_cast<size_t>(std::max<int64_t>(workspace_size, 4))).value_or_throw();
  const Buffer tickets = device.allocate(kMaxTickets * sizeof(unsigned)).value_or_throw();
  device.set_words(tickets.as(), 0, kMaxTickets, nullptr);

  HostMatrix first;
  for (int run = 0; run < 2; ++run) {
    const Buffer device_c = upload(device, before, c.offset_c);
    device.set_words(workspace.as(), bits(std::numeric_limits<float>::quiet_NaN()), static_cast<size_t>(workspace_size) / 4,
                     nullptr);
    const Operands operands{device_a.as<float>() + c.offset_a,
                            device_b.as<float>() + c.offset_b,
                            device_c.as<float>() + c.offset_c,
                            c.alpha,
                            c.beta,
                            {},
                            c.epilogue,
                            has_bias(c.epilogue) ? Bias{device_bias.as<float>() + 1, bias.stride} : Bias{}};
    const Result<TilePlan> plan = build_plan(device, c.choice, p, operands);
    if (!plan) return plan.error();
    const Result<bool> launched =
        launch_plan(device, *plan, p, operands, workspace.as<float>(), tickets.as<unsigned>(), nullptr);
    if (!launched) return launched.error();
    device.synchronize(nullptr);
    HostMatrix after = before;
    device.copy_to_host(after.data.data(), operands.c, after.data.size() * sizeof(float));
    if (std::string why = why_wrong(c, a, b, before, after, bias); !why.empty()) return why;
    if (run == 0)
      first = after;
    else if (std::memcmp(first.data.data(), after.data.data(), after.data.size() * sizeof(float)) != 0)
      return "two runs differ";
  }
  return {};
}

// Cases without results are none: a tile of one column, less one.
inline void expect_right(Device& device, const std::vector<ProductCase>& cases) {
  for (const ProductCase& c : cases) {
    if (c.problem.empty()) continue;
    EXPECT_EQ(check_product(device, c), "") << to_string(c);
  }
}

}  // namespace gemm::test
