#include "tuner/build_cache.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

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

// Notes what it builds, and builds nothing before it is let go.
class HeldDevice : public BuildCache {
 public:
  HeldDevice() : BuildCache(make_emulated_device(), 0) {}
  Result<std::shared_ptr<Kernel>> build(const KernelSpec& spec) override {
    {
      std::unique_lock lock(mutex_);
      order_.push_back(spec.name);
      changed_.notify_all();
      changed_.wait(lock, [&] { return free_; });
    }
    return BuildCache::build(spec);
  }
  void wait_for_the_first() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !order_.empty(); });
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    free_ = true;
    changed_.notify_all();
  }
  std::vector<std::string> wait_for(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return order_.size() == count; });
    return order_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> order_;
  bool free_ = false;
};

TEST(BuildCache, BuildsFirstWhatIsAskedForNext) {
  auto device = std::make_unique<HeldDevice>();
  HeldDevice& held = *device;
  BuildCache cache(std::move(device), 1);
  cache.prefetch(spec(0));
  held.wait_for_the_first();
  cache.prefetch(spec(1));
  cache.prefetch(spec(2));
  cache.prefetch_first({spec(3), spec(2), spec(0)});
  held.let_go();
  EXPECT_EQ(held.wait_for(4), (std::vector<std::string>{spec(0).name, spec(3).name, spec(2).name, spec(1).name}));
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
