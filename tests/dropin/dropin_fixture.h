// The drop-in on the emulated device, with a fake cuBLAS behind it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "dispatch_cases.h"
#include "dropin/call.h"
#include "dropin/server.h"
#include "request.h"

namespace gemm::test {

using dropin::kEntryNames;
using dropin::Verdict;

gemm_context_t* emulated_context(EmulatorOptions options = default_emulator_options());

std::string name_of(Entry entry);

// What takes the place of the process's server from now on.
void use_server(dropin::Server& server);

class Dropin : public testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite() { gemm_destroy(context_); }
  void SetUp() override;

  // What reached the fake libraries since the last question.
  static std::string forwarded_calls();

  // Why the request was not served rightly, or an empty string. Brings the bias, of a batch
  // one for each matrix or one for all.
  static std::string check_served(Request r, bool shared_bias = false);

  // Why the request did not go, for the expected reason, to the real function and nowhere else; or an empty string.
  static std::string check_forwarded(const Request& r, Verdict expected);

  static inline void* fake_cublas_ = nullptr;
  static inline void* fake_cublaslt_ = nullptr;
  static inline gemm_context_t* context_ = nullptr;
  dropin::Server server_{[](Stream) { return 0; }, [](int) { return context_; }};
};

}  // namespace gemm::test
