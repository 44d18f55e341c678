// Tensor maps of the emulated device: what is refused, and what a copied box holds.
#include "emulator/emulated_tensor_map.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace gemm {
namespace {

// Two matrices of 5 lines of 12 floats, 16 apart, that count up from 1.
struct Tensor {
  alignas(16) float data[2 * 96];
  TensorMapSpec spec{data, 12, 5, 2, 16, 96, 8, 4, 0};
  Tensor() { std::iota(std::begin(data), std::end(data), 1.0f); }

  std::vector<float> box(int x, int line, int batch) {
    const EmulatedTensorMap map = emulated_tensor_map(encode_emulated_map(spec).value_or_throw());
    std::vector<float> copied(static_cast<size_t>(map.box_floats()), -1);
    copy_tensor_box(map, copied.data(), x, line, batch);
    return copied;
  }
  float at(int x, int line, int batch) const { return data[batch * 96 + line * 16 + x]; }
};

TEST(TensorMap, BoxesHoldTheMatrixAndZerosBeyondIt) {
  Tensor tensor;
  for (int batch : {0, 1}) {
    const std::vector<float> box = tensor.box(8, 3, batch);
    for (int line = 0; line < 4; ++line)
      for (int x = 0; x < 8; ++x) {
        const bool inside = 8 + x < 12 && 3 + line < 5;
        EXPECT_EQ(box[static_cast<size_t>(line * 8 + x)], inside ? tensor.at(8 + x, 3 + line, batch) : 0.0f);
      }
  }
}

TEST(TensorMap, SwizzleMovesPiecesWithinTheirLine) {
  std::vector<float> matrix(16 * 32);
  std::iota(matrix.begin(), matrix.end(), 0.0f);
  for (const int bytes : {64, 128}) {
    const int length = bytes / 4, pieces = length / 4;
    const TensorMapSpec spec{matrix.data(), length, 16, 1, 32, 0, length, 16, bytes};
    std::vector<float> box(static_cast<size_t>(length) * 16);
    copy_tensor_box(emulated_tensor_map(encode_emulated_map(spec).value_or_throw()), box.data(), 0, 0, 0);
    for (int line = 0; line < 16; ++line)
      for (int piece = 0; piece < pieces; ++piece) {
        const int moved = piece ^ (bytes == 128 ? line % 8 : line / 2 % 4);
        EXPECT_EQ(box[static_cast<size_t>(line * length + moved * 4)], static_cast<float>(line * 32 + piece * 4));
      }
  }
}

TEST(TensorMap, MovesToAnEqualOperandElsewhere) {
  Tensor here, there;
  there.data[0] = 1000;
  TensorMap map = encode_emulated_map(here.spec).value_or_throw();
  move_emulated_map(map, there.data);
  float box[32];
  copy_tensor_box(emulated_tensor_map(map), box, 0, 0, 0);
  EXPECT_EQ(box[0], 1000);
}

TEST(TensorMap, RefusesWhatTheDriverRefuses) {
  const struct {
    const char* what;
    void (*change)(TensorMapSpec&);
  } cases[] = {{"aligned", [](TensorMapSpec& s) { s.data += 1; }},
               {"extent", [](TensorMapSpec& s) { s.length = 0; }},
               {"leading dimension", [](TensorMapSpec& s) { s.ld = 13; }},
               {"stride", [](TensorMapSpec& s) { s.stride = 97; }},
               {"box side", [](TensorMapSpec& s) { s.box_lines = 257; }},
               {"box length", [](TensorMapSpec& s) { s.box_length = 6; }},
               {"no such swizzle", [](TensorMapSpec& s) { s.swizzle_bytes = 48; }},
               {"longer than the swizzle", [](TensorMapSpec& s) { s.box_length = 32, s.swizzle_bytes = 64; }}};
  for (const auto& c : cases) {
    Tensor tensor;
    c.change(tensor.spec);
    const Result<TensorMap> map = encode_emulated_map(tensor.spec);
    ASSERT_FALSE(map.ok()) << c.what;
    EXPECT_NE(map.error().find(c.what), std::string::npos) << map.error();
  }
}

}  // namespace
}  // namespace gemm
