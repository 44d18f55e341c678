#include "emulator/emulated_tensor_map.h"

#include <cstring>
#include <string>

namespace gemm {
namespace {

constexpr int64_t kLongestBox = 256;

std::string why_refused(const TensorMapSpec& s) {
  if (s.data == nullptr || reinterpret_cast<uintptr_t>(s.data) % 16 != 0) return "data is not aligned to 16 bytes";
  if (s.length < 1 || s.lines < 1 || s.batch < 1) return "an extent is not positive";
  if (s.lines > 1 && s.ld % 4 != 0) return "the leading dimension is not a multiple of 16 bytes";
  if (s.batch > 1 && s.stride % 4 != 0) return "the batch stride is not a multiple of 16 bytes";
  if (s.box_length < 1 || s.box_length > kLongestBox || s.box_lines < 1 || s.box_lines > kLongestBox)
    return "a box side is not between 1 and 256";
  if (s.box_length * 4 % 16 != 0) return "the box length is not a multiple of 16 bytes";
  if (s.swizzle_bytes != 0 && s.swizzle_bytes != 64 && s.swizzle_bytes != 128) return "there is no such swizzle";
  if (s.swizzle_bytes != 0 && s.box_length * 4 > s.swizzle_bytes) return "the box is longer than the swizzle";
  return {};
}

// Where 16-byte piece `piece` of line `line` of a box lies in its line.
int swizzled(int swizzle_bytes, int line, int piece) {
  if (swizzle_bytes == 128) return piece ^ (line & 7);
  if (swizzle_bytes == 64) return piece ^ (line >> 1 & 3);
  return piece;
}

}  // namespace

Result<TensorMap> encode_emulated_map(const TensorMapSpec& s) {
  if (const std::string why = why_refused(s); !why.empty()) return Failure{"no tensor map: " + why};
  const EmulatedTensorMap map{s.data,   s.length,     s.lines,     s.batch,        s.ld,
                              s.stride, s.box_length, s.box_lines, s.swizzle_bytes};
  TensorMap encoded{};
  static_assert(sizeof map <= sizeof encoded);
  std::memcpy(&encoded, &map, sizeof map);
  return encoded;
}

EmulatedTensorMap emulated_tensor_map(const TensorMap& map) {
  EmulatedTensorMap decoded{};
  std::memcpy(&decoded, &map, sizeof decoded);
  return decoded;
}

void move_emulated_map(TensorMap& map, const float* data) {
  EmulatedTensorMap moved = emulated_tensor_map(map);
  moved.data = data;
  std::memcpy(&map, &moved, sizeof moved);
}

void copy_tensor_box(const EmulatedTensorMap& map, float* to, int x, int line, int batch) {
  for (int l = 0; l < map.box_lines; ++l)
    for (int e = 0; e < map.box_length; ++e) {
      const int64_t column = x + e, row = line + l;
      const bool inside = column < map.length && row < map.lines && batch < map.batch;
      const int place = swizzled(map.swizzle_bytes, l, e / 4) * 4 + e % 4;
      to[l * map.box_length + place] = inside ? map.data[batch * map.stride + row * map.ld + column] : 0.0f;
    }
}

}  // namespace gemm
