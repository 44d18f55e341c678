// What devices are called, and what is said where a GPU cannot be opened.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/dynamic_library.h"

namespace gemm {
namespace {

TEST(DeviceInfo, SlugIsLowerCaseWithSingleDashes) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"NVIDIA H200", "nvidia-h200"},
      {"NVIDIA GeForce RTX 4090", "nvidia-geforce-rtx-4090"},
      {"NVIDIA H100 80GB HBM3", "nvidia-h100-80gb-hbm3"},
      {"NVIDIA A100-SXM4-40GB", "nvidia-a100-sxm4-40gb"},
      {"NVIDIA H200 MIG 1g.18gb", "nvidia-h200-mig-1g-18gb"},
      {"  Tesla  T4 (x) ", "tesla-t4-x"},
      {"../../etc/passwd", "etc-passwd"},
      {"Gr\xc3\xa4tsche 1", "gr-tsche-1"},
      {"", "unknown-gpu"},
      {"--", "unknown-gpu"},
  };
  for (const auto& [name, slug] : cases) {
    DeviceInfo info;
    info.name = name;
    EXPECT_EQ(info.slug(), slug) << "of '" << name << "'";
  }
}

TEST(DeviceInfo, TimesOfTheEmulatedDeviceAreModelled) {
  DeviceInfo info;
  EXPECT_STREQ(info.provenance(), "measured");
  info.emulated = true;
  EXPECT_STREQ(info.provenance(), "modelled");
}

TEST(OpenCudaDevice, SaysWhyThereIsNone) {
  std::string why;
  const int count = cuda_device_count(&why);
  for (const int index : {-1, count, 1000}) {
    const auto device = open_cuda_device(index);
    ASSERT_FALSE(device.ok()) << index;
    if (count == 0)
      EXPECT_EQ(device.error(), why);
    else
      EXPECT_NE(device.error().find("there is no GPU " + std::to_string(index) + "; "), std::string::npos) << device.error();
  }
  EXPECT_EQ(why.empty(), count > 0);
  EXPECT_EQ(cuda_device_count(nullptr), count);
}

TEST(DynamicLibrary, OpensTheFirstThatIsThere) {
  const auto library = DynamicLibrary::open({"libgemm-is-not-there.so.1", "libm.so.6"}, "");
  ASSERT_TRUE(library.ok()) << library.error();
  auto* const cosine = library->symbol<double(double)>("cos");
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(library->symbol<void()>("gemm_is_not_there"), nullptr);
  EXPECT_NE(library->path().find("libm"), std::string::npos);
  EXPECT_EQ(library->path().front(), '/');
}

TEST(DynamicLibrary, SaysWhatWasTriedAndWhatToDo) {
  const auto library = DynamicLibrary::open({"libgemm-a.so.1", "libgemm-b.so", "/etc/passwd"}, "Install gemm-a.");
  ASSERT_FALSE(library.ok());
  for (const char* part :
       {"libgemm-a.so.1", "libgemm-b.so", "/usr/local/cuda/lib64/libgemm-b.so", "Install gemm-a.", "/etc/passwd: "})
    EXPECT_NE(library.error().find(part), std::string::npos) << part << " is not in: " << library.error();
}

}  // namespace
}  // namespace gemm
