// The public headers stand alone: gemm.h in C99 without any CUDA header, gemm.hpp in C++17, and beside the internals.
#include <gtest/gtest.h>

#include <fstream>

#include "command.h"
#include "dispatch/context.h"
#include "dispatch_cases.h"
#include "gemm/gemm.hpp"  // together with internal headers, which use the same namespace

namespace gemm::test {
namespace {

CommandResult compile(const std::string& compiler, const std::string& name, const std::string& text) {
  const TemporaryFolder folder;
  std::ofstream(folder.file(name)) << text;
  return run_command(compiler +
                     " -Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only -I '" GEMM_SOURCE_DIR "/include' '" +
                     folder.file(name) + "'");
}

TEST(PublicHeaders, CHeaderIsC99) {
  const CommandResult result = compile("cc -std=c99 -Wstrict-prototypes", "main.c", R"(
#include <gemm/gemm.h>
int main(void) {
  gemm_context_t* context = NULL;
  gemm_problem_t problem = {GEMM_OP_N, GEMM_OP_T, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0};
  float one = 1;
  gemm_stream_t stream = NULL;
  if (gemm_create(&context, 0) != GEMM_SUCCESS) return gemm_last_error()[0] != 0;
  gemm_prepare(context, stream, &problem, NULL, NULL, NULL);
  gemm_sgemm(context, stream, GEMM_OP_N, GEMM_OP_C, 1, 1, 1, &one, NULL, 1, NULL, 1, &one, NULL, 1);
  gemm_statistics_t statistics;
  gemm_policy_t policy = GEMM_POLICY_REPRODUCIBLE;
  gemm_set_policy(context, policy);
  gemm_prepare_ex(context, stream, &problem, GEMM_SCALARS_DEVICE, 1, NULL, NULL, NULL);
  gemm_sgemm_ex(context, stream, &problem, GEMM_SCALARS_DEVICE, NULL, NULL, NULL, NULL, NULL);
  gemm_sgemm_batched_ex(context, stream, &problem, GEMM_SCALARS_HOST, &one, NULL, NULL, &one, NULL);
  gemm_release_stream(context, stream);
  if (gemm_get_statistics(context, &statistics) != GEMM_SUCCESS) return (int)statistics.exact;
  return (int)gemm_destroy(context);
})");
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

TEST(PublicHeaders, WrapperIsCpp17) {
  const CommandResult result = compile("c++ -std=c++17", "main.cpp", R"(
#include <gemm/gemm.hpp>
int main() {
  gemm::Handle handle(0), other(std::move(handle));
  other.sgemm_row_major(nullptr, GEMM_OP_N, GEMM_OP_N, 1, 1, 1, 1.0f, nullptr, 1, nullptr, 1, 0.0f, nullptr, 1);
  const gemm_problem_t problem{GEMM_OP_N, GEMM_OP_T, 1, 2, 3, 3, 3, 2, 1, 0, 0, 0};
  other.sgemm_row_major(nullptr, problem, nullptr, nullptr, nullptr, nullptr, nullptr);
  other.sgemm_batched_row_major(nullptr, problem, nullptr, nullptr, nullptr, nullptr, nullptr);
  other.set_policy(GEMM_POLICY_TUNED_ONLY);
  return static_cast<int>(other.workspace_size() & other.statistics().cublas);
})");
  EXPECT_EQ(result.exit_code, 0) << result.output;
}

TEST(PublicHeaders, ACompilerErrorWouldShow) {
  EXPECT_NE(compile("cc -std=c99", "main.c", "#include <gemm/gemm.h>\nint x = gemm_no_such_function;\n").exit_code, 0);
}

}  // namespace
}  // namespace gemm::test
