// A context on a device that leaves out the kernels where only the launches count, so that thousands of calls take no time.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "dispatch_cases.h"
#include "gemm/gemm.hpp"
#include "scripted_device.h"

namespace gemm::test {

// Matrices that nobody reads.
inline float* const kSomewhere = reinterpret_cast<float*>(0x10000);

inline Stream stream_number(uintptr_t number) { return reinterpret_cast<Stream>(0x5000 + 16 * number); }

// A context on a scripted device.
struct Scripted {
  std::vector<std::string> warnings, news;
  ScriptedDevice* device;
  Handle handle;

  explicit Scripted(bool runs_kernels = false, EmulatorOptions options = default_emulator_options(),
                    LogLevel level = LogLevel::warn)
      : Scripted(std::make_unique<ScriptedDevice>(runs_kernels, std::move(options)), level) {}

  Scripted(std::unique_ptr<ScriptedDevice> owned, LogLevel level)
      : device(owned.get()),
        handle(make_context(std::move(owned), {false, [this](const std::string& text) { warnings.push_back(text); },
                                               [this](const std::string& text) { news.push_back(text); }, level})) {}

  gemm_context_t* get() const { return handle.get(); }
  gemm_statistics_t statistics() const {
    gemm_statistics_t counted{};
    EXPECT_EQ(gemm_get_statistics(get(), &counted), GEMM_SUCCESS);
    return counted;
  }
  gemm_status_t multiply(const Problem& p, Stream stream = nullptr) const {
    const float alpha = 1, beta = 0;
    const gemm_problem_t problem = c_problem(p);
    return gemm_sgemm_ex(get(), static_cast<gemm_stream_t>(stream), &problem, GEMM_SCALARS_HOST, &alpha, kSomewhere,
                         kSomewhere, &beta, kSomewhere);
  }
};

inline const Problem kSplit = packed_problem(40, 40, 256);

inline void force_split(const Scripted& scripted, Reduction reduction = Reduction::ticket) {
  force(scripted.get(), {emulated_configs().front(), 4, reduction}, {kSplit});
}

}  // namespace gemm::test
