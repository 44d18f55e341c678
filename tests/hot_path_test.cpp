// What calls with a known shape may do, and what they must not.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "scripted_context.h"

namespace {

thread_local int64_t allocations = 0;

}  // namespace

// Counts what the calling thread allocates.
// Not inlined, or the compiler takes malloc and delete for a mismatch.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes > 0 ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace gemm::test {
namespace {

TEST(HotPath, AKnownShapeAllocatesNothing) {
  Scripted scripted;
  scripted.device->remember_launches(false);
  const KernelConfig tma = emulated_configs()[8], specialized = emulated_configs()[10];
  for (const Choice& choice :
       {Choice{emulated_configs().front(), 4, Reduction::ticket}, Choice{emulated_configs().front(), 4, Reduction::kernel},
        Choice{tma, 1, Reduction::ticket}, Choice{specialized, 1, Reduction::ticket},
        Choice{specialized, 4, Reduction::kernel, Relayout::ab}}) {
    force(scripted.get(), choice, {kSplit});
    EXPECT_NE(explanation(scripted.get(), kSplit).find("rule       exact"), std::string::npos)
        << explanation(scripted.get(), kSplit);
    ASSERT_EQ(scripted.multiply(kSplit), GEMM_SUCCESS);
    const int64_t before = allocations;
    for (int i = 0; i < 10; ++i) scripted.multiply(kSplit);
    EXPECT_EQ(allocations, before) << to_string(choice);
  }
  EXPECT_EQ(scripted.statistics().exact, 55u);
}

// The panels of a product on copies need less than the whole product, which runs where nothing is copied.
TEST(HotPath, ProductsThatNameTheirOperandsOnTheGpuFitTheirWorkspaceWithoutCopies) {
  const Problem p = packed_problem(64, 200'000, 1024, Op::N, Op::N);
  Scripted scripted;
  const Choice choice{emulated_configs()[10], 4, Reduction::ticket, Relayout::b};
  ASSERT_EQ(why_illegal(choice, p, scripted.device->info(), kWorkspaceBytes), "");
  ASSERT_NE(why_illegal(without_relayout(choice), p, scripted.device->info(), kWorkspaceBytes), "");
  force(scripted.get(), choice, {p});
  for (const bool arrays : {false, true}) {
    const gemm_problem_t problem = c_problem(p);
    const float scalars[] = {1, 0};
    float* const matrices[] = {kSomewhere};
    ASSERT_EQ(arrays ? gemm_sgemm_batched_ex(scripted.get(), nullptr, &problem, GEMM_SCALARS_HOST, scalars, matrices,
                                             matrices, scalars + 1, matrices)
                     : gemm_sgemm_ex(scripted.get(), nullptr, &problem, GEMM_SCALARS_DEVICE, scalars, kSomewhere, kSomewhere,
                                     scalars + 1, kSomewhere),
              GEMM_SUCCESS)
        << gemm_last_error();
    const TileArgs launched = scripted.device->launches().back().args;
    EXPECT_EQ(launched.split_k, 1) << "partial tiles of all of C take more than the workspace";
  }
}

TEST(HotPath, PlansThatAreDroppedAreMadeAgain) {
  Scripted scripted;
  scripted.device->remember_launches(false);
  constexpr auto kMany = static_cast<int64_t>(PlanMemory::kMaxPlans) + 10;
  for (int64_t m = 1; m <= kMany; ++m) ASSERT_EQ(scripted.multiply(packed_problem(m, 1, 1)), GEMM_SUCCESS);
  EXPECT_EQ(scripted.statistics().new_plans, static_cast<uint64_t>(kMany));
  for (const int64_t m : {kMany, int64_t{1}}) ASSERT_EQ(scripted.multiply(packed_problem(m, 1, 1)), GEMM_SUCCESS);
  EXPECT_EQ(scripted.statistics().new_plans, static_cast<uint64_t>(kMany) + 1) << "the first was dropped, the last was not";
}

TEST(HotPath, AKnownShapeDoesNotExcuseWrongPointers) {
  Scripted scripted;
  const Problem p = packed_problem(20, 20, 20);
  ASSERT_EQ(scripted.multiply(p), GEMM_SUCCESS);
  const ApiCase c{p};
  float* const odd = reinterpret_cast<float*>(0x10002);
  EXPECT_EQ(call(scripted.get(), c, nullptr, kSomewhere, kSomewhere), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(call(scripted.get(), c, kSomewhere, kSomewhere, nullptr), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(call(scripted.get(), c, kSomewhere, kSomewhere, odd), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(scripted.statistics().fallback, 1u);
}

}  // namespace
}  // namespace gemm::test
