// The streaming kernel: every configuration of the emulated set on the edge, split and tail cases, for all op pairs.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "emulator/emulated_device.h"
#include "emulator/emulated_stream_configs.h"
#include "tile_kernel_cases.h"

namespace gemm {
namespace {

class StreamKernel : public testing::TestWithParam<int> {
 protected:
  KernelConfig config() const { return kEmulatedStreamConfigs[GetParam()]; }

  void expect_all(const std::vector<test::ProductCase>& cases) { test::expect_right(*device_, cases); }

  // Runs the product of a problem without batch, and returns C.
  test::HostMatrix product(const Problem& p, const float* a, const float* b) {
    test::HostMatrix c{std::vector<float>(static_cast<size_t>(p.extent_c()), -1), p.ldc, 0};
    const Operands operands{a, b, c.data.data()};
    const TilePlan plan = build_plan(*device_, {config(), 1, Reduction::ticket}, p, operands).value_or_throw();
    EXPECT_TRUE(launch_plan(*device_, plan, p, operands, nullptr, nullptr, nullptr).ok());
    return c;
  }

  std::unique_ptr<Device> device_ = make_emulated_device();
};

TEST_P(StreamKernel, EdgesOfAllOpPairs) {
  for (Op op_a : test::kOps)
    for (Op op_b : test::kOps) expect_all(test::edge_cases(config(), op_a, op_b));
}

TEST_P(StreamKernel, SanitizerSelection) {
  for (const auto& [op_a, op_b] : test::kBothLayouts) expect_all(test::sanitizer_cases(config(), op_a, op_b));
}

TEST_P(StreamKernel, SplitsWithBothReductions) {
  for (Op op_a : test::kOps)
    for (Op op_b : test::kOps) expect_all(test::split_cases(config(), op_a, op_b));
}

TEST_P(StreamKernel, TailsOfKAreExact) { expect_all(test::tail_cases(config())); }

TEST_P(StreamKernel, OrderOfBlocksDoesNotChangeTheResult) {
  for (BlockOrder order : {BlockOrder::reverse, BlockOrder::shuffled}) {
    EmulatorOptions options = default_emulator_options();
    options.block_order = order;
    device_ = make_emulated_device(options);
    expect_all(test::split_cases(config(), Op::N, Op::N));
  }
}

// Lengths of k around those of a step, a round and a chunk, aligned for wide loads and not.
TEST_P(StreamKernel, LengthsOfKAroundStepsAndChunks) {
  const KernelConfig c = config();
  const int step = stream_shape(c).step();
  for (const int64_t k : {step, step * c.stages, c.BK, 2 * c.BK, 3 * c.BK + step})
    for (const int64_t change : {-4, -1, 0, 1, 4})
      for (Op op : test::kOps) {
        if (k + change < 1) continue;
        const Problem p = packed_problem(c.BM, c.BN, k + change, op, op);
        expect_all({{{c, 1, Reduction::ticket}, p, 1, 0}});
      }
}

// One row is all ones, the other rows are NaN: the first row must stay exact, so masks must select and not multiply.
TEST_P(StreamKernel, NanRowsDoNotLeakIntoOthers) {
  for (int64_t k : {31, 33, 47, 63, 65, 97, 127, 129}) {
    Problem p = packed_problem(16, 8, k, Op::T, Op::N);
    p.lda = k + 3;
    test::HostMatrix a{std::vector<float>(static_cast<size_t>(p.extent_a()), std::numeric_limits<float>::quiet_NaN()), p.lda,
                       0};
    for (int64_t i = 0; i < k; ++i) a.at(i, 0, 0) = 1;
    const test::HostMatrix b = test::random_matrix(k, p.n, p.ldb, 0, 1, p.extent_b(), true, 1);
    const test::HostMatrix c = product(p, a.data.data(), b.data.data());
    for (int64_t j = 0; j < p.n; ++j) EXPECT_EQ(c.at(0, j, 0), static_cast<float>(k)) << config_id(config()) << " k " << k;
  }
}

// One column of B is all ones, the others are NaN.
TEST_P(StreamKernel, NanColumnsDoNotLeakIntoOthers) {
  for (int64_t k : {31, 64, 129}) {
    const Problem p = packed_problem(16, 8, k, Op::N, Op::N);
    test::HostMatrix b{std::vector<float>(static_cast<size_t>(p.extent_b()), std::numeric_limits<float>::quiet_NaN()), p.ldb,
                       0};
    for (int64_t i = 0; i < k; ++i) b.at(i, 3, 0) = 1;
    const test::HostMatrix a = test::random_matrix(p.m, k, p.lda, 0, 1, p.extent_a(), true, 1);
    const test::HostMatrix c = product(p, a.data.data(), b.data.data());
    for (int64_t i = 0; i < p.m; ++i) EXPECT_EQ(c.at(i, 3, 0), static_cast<float>(k)) << config_id(config()) << " k " << k;
  }
}

// Address space for matrices with gaps of gigabytes; only pages that are touched take memory.
class SparseMatrix {
 public:
  static constexpr int64_t kLd = 1ll << 29;  // floats: four lines reach beyond 2^31 of them

  explicit SparseMatrix(int lines)
      : bytes_((static_cast<size_t>(lines - 1) * kLd + 1024) * sizeof(float)),
        data_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~SparseMatrix() {
    if (mapped()) munmap(data_, bytes_);
  }
  SparseMatrix(const SparseMatrix&) = delete;
  SparseMatrix& operator=(const SparseMatrix&) = delete;

  bool mapped() const { return data_ != MAP_FAILED; }
  float* data() const { return static_cast<float*>(data_); }

 private:
  size_t bytes_;
  void* data_;
};

TEST_P(StreamKernel, LongLeadingDimensionsTake64BitOffsets) {
  constexpr int kSize = 6;
  const SparseMatrix a(kSize), b(kSize);
  if (!a.mapped() || !b.mapped()) GTEST_SKIP() << "no address space for two sparse matrices";
  for (int line = 0; line < kSize; ++line) {
    std::fill_n(a.data() + line * SparseMatrix::kLd, kSize, 1.0f);
    std::fill_n(b.data() + line * SparseMatrix::kLd, kSize, 1.0f);
  }
  for (Op op_a : test::kOps)
    for (Op op_b : test::kOps) {
      Problem p = packed_problem(kSize, kSize, kSize, op_a, op_b);
      p.lda = p.ldb = SparseMatrix::kLd;
      for (const float result : product(p, a.data(), b.data()).data) EXPECT_EQ(result, kSize) << config_id(config());
    }
}

INSTANTIATE_TEST_SUITE_P(EmulatedConfigs, StreamKernel, testing::Range(0, kEmulatedStreamConfigCount),
                         [](const auto& info) { return config_id(kEmulatedStreamConfigs[info.param]); });

TEST(StreamConfig, SaysWhyAConfigurationIsOut) {
  using enum LoadPath;
  const KernelConfig good{
      32, 4, 1024, 16, 4, 1, 4, 4, 4, 4, 2, register_staged, FmaOrder::rows, AccInit::plain, Family::stream};
  EXPECT_EQ(why_invalid(good, DeviceLimits{}), nullptr);
  EXPECT_EQ(good.threads(), 2 * 4 * 32);
  struct Invalid {
    void (*change)(KernelConfig&);
    const char* reason_part;
  };
  const Invalid cases[] = {
      {[](KernelConfig& c) { c.stages = 0; }, "positive"},
      {[](KernelConfig& c) { c.stages = 17; }, "beyond"},
      {[](KernelConfig& c) { c.load = async; }, "register_staged"},
      {[](KernelConfig& c) { c.TN = 2; }, "whole short side"},
      {[](KernelConfig& c) { c.order = FmaOrder::columns; }, "whole short side"},
      {[](KernelConfig& c) { c.BN = c.WN = c.TN = 3; }, "short side must be"},
      {[](KernelConfig& c) { c.TM = 2; }, "4 or 8"},
      {[](KernelConfig& c) { c.WM = 12, c.BM = 24; }, "thread tiles"},
      {[](KernelConfig& c) { c.BM = 40; }, "multiple of the warp tile"},
      {[](KernelConfig& c) { c.BK = 768; }, "BK"},
      {[](KernelConfig& c) { c.slices = 32, c.BK = 4096; }, "threads per block"},
      {[](KernelConfig& c) { c.BK = 8192; }, "shared memory"},
      {[](KernelConfig& c) { c.min_blocks = 4; }, "spill"},
  };
  for (const Invalid& invalid : cases) {
    KernelConfig c = good;
    invalid.change(c);
    const char* why = why_invalid(c, DeviceLimits{});
    ASSERT_NE(why, nullptr) << invalid.reason_part;
    EXPECT_NE(std::string(why).find(invalid.reason_part), std::string::npos) << why;
  }
  DeviceLimits turing;
  turing.compute_capability = 75;
  EXPECT_NE(why_invalid(good, turing), nullptr);
}

}  // namespace
}  // namespace gemm
