#include "tuner/build_cache.h"

#include <gtest/gtest.h>

#include "emulator/emulated_device.h"
#include "kernels/launch.h"

namespace gemm {
namespace {

KernelSpec spec(size_t config) {
  return variant_spec(variant_for(emulated_configs()[config], packed_problem(64, 64, 64), {}));
}

TEST(BuildCache, RemembersWhatItBuilt) {
  BuildCache cache(make_emulated_device(), 0);
  const std::shared_ptr<Kernel> kernel = cache.build(spec(0)).value_or_throw();
  EXPECT_EQ(cache.build(spec(0)).value_or_throw(), kernel);
}

TEST(BuildCache, LetsGoOfTheLongestUnusedAndBuildsItAgain) {
  BuildCache cache(make_emulated_device(), 0, 2);
  const std::weak_ptr<Kernel> first = cache.build(spec(0)).value_or_throw();
  const std::weak_ptr<Kernel> second = cache.build(spec(1)).value_or_throw();
  EXPECT_FALSE(first.expired());
  cache.build(spec(0)).value_or_throw();  // now the second is the longest unused
  cache.build(spec(2)).value_or_throw();
  EXPECT_FALSE(first.expired());
  EXPECT_TRUE(second.expired());
  EXPECT_TRUE(cache.build(spec(1)).ok());
}

TEST(BuildCache, BuildsAheadInTheBackground) {
  BuildCache cache(make_emulated_device(), 2, 3);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < emulated_configs().size(); ++i) cache.prefetch(spec(i));
    for (size_t i = 0; i < emulated_configs().size(); ++i) EXPECT_TRUE(cache.build(spec(i)).ok());
  }
}

TEST(BuildCache, PassesOnWhyAKernelCannotBeBuilt) {
  BuildCache cache(make_emulated_device(), 1);
  KernelSpec unknown = spec(0);
  unknown.name = "unknown";
  unknown.function = "unknown";
  cache.prefetch(unknown);
  const Result<std::shared_ptr<Kernel>> built = cache.build(unknown);
  ASSERT_FALSE(built.ok());
  EXPECT_NE(built.error().find("unknown"), std::string::npos);
}

}  // namespace
}  // namespace gemm
