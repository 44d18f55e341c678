// The fixture of the tests that run one configuration each on GPU 0.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "product_check.h"

namespace gemm::test {

// Parameter: the number of the configuration in what `all_configs` returns. Skips itself where there is no GPU, or where the
// configuration does not fit it.
template <std::vector<KernelConfig> (*AllConfigs)()>
class GpuKernelFixture : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Device>> device = open_cuda_device(0);
    if (!device) GTEST_SKIP() << "no GPU: " << device.error();
    device_ = std::move(*device);
    config_ = AllConfigs()[static_cast<size_t>(GetParam())];
    if (const char* why = why_invalid(config_, device_->info().limits)) GTEST_SKIP() << why;
  }

  void expect_all(const std::vector<ProductCase>& cases) { expect_right(*device_, cases); }

  std::unique_ptr<Device> device_;
  KernelConfig config_;
};

// The name of a test with such a parameter.
template <std::vector<KernelConfig> (*AllConfigs)()>
std::string config_name(const testing::TestParamInfo<int>& info) {
  return config_id(AllConfigs()[static_cast<size_t>(info.param)]);
}

}  // namespace gemm::test
