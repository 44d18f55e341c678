// Products with bias and ReLU through a context, as the drop-in asks for them.
#include <gtest/gtest.h>

#include "epilogue_cases.h"
#include "scripted_context.h"

namespace gemm::test {
namespace {

constexpr Epilogue kEpilogues[] = {Epilogue::none, Epilogue::bias, Epilogue::relu, Epilogue::bias_relu};

// A context as the drop-in opens it.
struct Served {
  Handle handle{make_context(make_emulated_device(),
                             {.find_table = false, .warn = [](const std::string&) {}, .cublas_is_callers = true})};
  gemm_context_t* context() const { return handle.get(); }
  Device& device() const { return context()->context.device(); }
  gemm_statistics_t statistics() const {
    gemm_statistics_t counted{};
    EXPECT_EQ(gemm_get_statistics(context(), &counted), GEMM_SUCCESS);
    return counted;
  }
};

gemm_status_t multiply(gemm_context_t* context, const ProductCase& c, Operands operands, bool device_scalars = false,
                       Stream stream = nullptr) {
  operands.epilogue = c.epilogue;
  // On the emulated device host memory is device memory.
  return sgemm(context, static_cast<gemm_stream_t>(stream), c_problem(c.problem),
               device_scalars ? GEMM_SCALARS_DEVICE : GEMM_SCALARS_HOST, &c.alpha, &c.beta, operands);
}

// Why the case is wrong, or an empty string. A and B are null where alpha or k is 0.
std::string check(const Served& served, const ProductCase& c, bool device_scalars = false) {
  const Problem& p = c.problem;
  const HostMatrix a = random_matrix(p.rows_a(), p.columns_a(), p.lda, p.stride_a, p.batch, p.extent_a(), false, 1);
  const HostMatrix b = random_matrix(p.rows_b(), p.columns_b(), p.ldb, p.stride_b, p.batch, p.extent_b(), false, 2);
  const HostMatrix bias = random_bias(c);
  const Buffer device_a = upload(served.device(), a, 0), device_b = upload(served.device(), b, 0),
               device_bias = upload(served.device(), bias, 1);
  const HostMatrix before = c_before({p, c.alpha, c.beta});
  GuardedC out(served.device(), before, 64, 0);
  Operands operands{device_a.as<float>(), device_b.as<float>(), out.data()};
  if (!device_scalars && (c.alpha == 0 || p.k == 0)) operands.a = operands.b = nullptr;
  if (has_bias(c.epilogue)) operands.bias = {device_bias.as<float>() + 1, bias.stride};
  if (multiply(served.context(), c, operands, device_scalars) != GEMM_SUCCESS) return gemm_last_error();
  HostMatrix after = before;
  if (std::string why = out.read(after); !why.empty()) return why;
  return why_wrong(c, a, b, before, after, bias);
}

ProductCase with(Epilogue epilogue, const Problem& problem, float alpha = 1, float beta = 0) {
  ProductCase c{{}, problem, alpha, beta};
  c.epilogue = epilogue;
  return c;
}

// One context, so that plans of the same problem must be told apart.
TEST(EpilogueDispatch, EachEpilogueHasItsOwnPlan) {
  const Served served;
  const Problem p = aligned_problem(36, 33, 24, Op::T, Op::N), batch = aligned_problem(36, 33, 24, Op::N, Op::N, 3);
  for (int round = 0; round < 2; ++round)
    for (const Epilogue epilogue : kEpilogues)
      for (const Problem& problem : {p, batch}) {
        EXPECT_EQ(check(served, with(epilogue, problem)), "") << to_string(epilogue);
        EXPECT_EQ(check(served, with(epilogue, problem, 0.5f, -2)), "") << to_string(epilogue);
      }
  EXPECT_EQ(served.statistics().fallback, 32u);
  EXPECT_EQ(served.statistics().new_plans, 8u);
}

// A and B are not read; C = max(beta * C + bias, 0).
TEST(EpilogueDispatch, WithoutAProductTheEpilogueIsLeft) {
  const Served served;
  uint64_t calls = 0;
  for (const Epilogue epilogue : kEpilogues)
    for (const float beta : {0.0f, 1.0f, 2.0f}) {
      const Problem batch = padded(packed_problem(5, 3, 7, Op::N, Op::N, 3), 1, 1, 1);
      Problem no_k = packed_problem(33, 7, 0);
      no_k.lda = 33;
      for (const ProductCase& c : {with(epilogue, batch, 0, beta), with(epilogue, no_k, 1, beta)}) {
        EXPECT_EQ(check(served, c), "") << to_string(c);
        ++calls;
      }
    }
  EXPECT_EQ(served.statistics().scaled, calls);
}

TEST(EpilogueDispatch, ScalarsMayLieOnTheGpu) {
  const Served served;
  const Problem p = aligned_problem(20, 24, 40, Op::T, Op::N, 2);
  for (const float alpha : {0.0f, 1.5f})
    for (const float beta : {0.0f, 2.0f}) {
      const ProductCase c = with(Epilogue::bias_relu, p, alpha, beta);
      force(served.context(), {default_configs().back(), 1, Reduction::ticket}, {p});
      EXPECT_EQ(check(served, c, true), "") << to_string(c);
      force(served.context(), {default_configs().back(), 3, Reduction::kernel}, {p});
      EXPECT_EQ(check(served, c, true), "") << to_string(c) << " split";
    }
}

TEST(EpilogueDispatch, ReproducibleKernelsHaveThemToo) {
  const Served served;
  ASSERT_EQ(gemm_set_policy(served.context(), GEMM_POLICY_REPRODUCIBLE), GEMM_SUCCESS);
  for (const Problem& p : {aligned_problem(36, 32, 1600, Op::T, Op::N), aligned_problem(260, 268, 24, Op::N, Op::N)})
    EXPECT_EQ(check(served, with(Epilogue::bias_relu, p)), "") << p;
  EXPECT_EQ(served.statistics().reproducible, 2u);
}

// As with a bundle that lacks them, where there is no compiler: nothing is launched, and the caller's cuBLAS can serve.
TEST(EpilogueDispatch, KernelsThatCannotBeBuiltAreLeftToTheCallersCublas) {
  const Served served;
  const ProductCase c = with(Epilogue::bias, packed_problem(8, 8, 8, Op::T, Op::T));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(check(served, c), "cuBLAS is left to the caller");
  EXPECT_EQ(served.statistics().fallback + served.statistics().cublas, 0u);
  EXPECT_EQ(check(served, with(Epilogue::none, c.problem)), "");
}

// Our own cuBLAS is asked for cublasSgemm, which cannot do it.
TEST(EpilogueDispatch, OurOwnCublasNeverServes) {
  const Scripted scripted;
  const ProductCase c = with(Epilogue::relu, aligned_problem(8, 8, 8, Op::N, Op::N));
  const Operands operands{kSomewhere, kSomewhere, kSomewhere};
  EXPECT_EQ(multiply(scripted.get(), c, operands), GEMM_SUCCESS);
  ASSERT_EQ(gemm_set_policy(scripted.get(), GEMM_POLICY_CUBLAS_ONLY), GEMM_SUCCESS);
  EXPECT_EQ(multiply(scripted.get(), c, operands), GEMM_NOT_SUPPORTED);
  EXPECT_NE(std::string(gemm_last_error()).find("ReLU"), std::string::npos) << gemm_last_error();
  EXPECT_EQ(multiply(scripted.get(), with(Epilogue::relu, c.problem, 0), operands), GEMM_NOT_SUPPORTED);
}

TEST(EpilogueDispatch, ABiasMustBeThereAndAligned) {
  const Scripted scripted;
  const Problem p = aligned_problem(8, 8, 8, Op::N, Op::N);
  Operands operands{kSomewhere, kSomewhere, kSomewhere};
  for (const float alpha : {1.0f, 0.0f})
    for (const float* bias : {static_cast<const float*>(nullptr), reinterpret_cast<const float*>(0x10002)})
      for (const bool known : {false, true}) {
        operands.bias.data = kSomewhere;
        if (known) {
          EXPECT_EQ(multiply(scripted.get(), with(Epilogue::bias, p, alpha), operands), GEMM_SUCCESS);
        }
        operands.bias.data = bias;
        EXPECT_EQ(multiply(scripted.get(), with(Epilogue::bias, p, alpha), operands), GEMM_INVALID_ARGUMENT);
        EXPECT_EQ(multiply(scripted.get(), with(Epilogue::relu, p, alpha), operands), GEMM_SUCCESS) << "it is not read";
      }
}

TEST(EpilogueDispatch, CapturesAsEver) {
  const Scripted scripted;
  force(scripted.get(), {default_configs().back(), 4, Reduction::kernel}, {aligned_problem(32, 32, 256, Op::T, Op::N)});
  const ProductCase c = with(Epilogue::bias, aligned_problem(32, 32, 256, Op::T, Op::N));
  Operands operands{kSomewhere, kSomewhere, kSomewhere};
  operands.bias.data = kSomewhere;
  scripted.device->begin_capture(stream_number(1), 1);
  ASSERT_EQ(multiply(scripted.get(), c, operands, false, stream_number(1)), GEMM_SUCCESS) << gemm_last_error();
  EXPECT_EQ(scripted.device->end_capture(stream_number(1))->kept.size(), 1u) << "its workspace";
  const auto launches = scripted.device->launches();
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_TRUE(launches[1].is_reduction);
  EXPECT_TRUE(scripted.device->touched().empty());
}

}  // namespace
}  // namespace gemm::test
