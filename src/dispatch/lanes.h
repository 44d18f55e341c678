// Eight floats that formulas work on as on one number, in vectors of the CPU's width. Formulas that are templates on the
// number also work with a double (cost_numbers.h). For code that is compiled for CPUs with wider vectors too: all of it is a
// template on the width, so that no other CPU comes to run it. Sums are not contracted (CMakeLists.txt) and each lane is
// rounded as IEEE says, so that any width gives the same to the last bit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gemm {

#define GEMM_INLINE [[gnu::always_inline]] inline

template <size_t kWidth>
struct VectorsOf;
template <>
struct VectorsOf<4> {
  typedef float Floats __attribute__((vector_size(16)));
  typedef int32_t Integers __attribute__((vector_size(16)));
};
template <>
struct VectorsOf<8> {
  typedef float Floats __attribute__((vector_size(32)));
  typedef int32_t Integers __attribute__((vector_size(32)));
};

template <size_t kWidth>  // floats in a vector of the CPU: 4 or 8
struct Lanes {
  static constexpr size_t kCount = 8, kVectors = kCount / kWidth;
  using Vector = typename VectorsOf<kWidth>::Floats;
  using Integers = typename VectorsOf<kWidth>::Integers;

  // All bits of a lane are set or none.
  struct Mask {
    Integers vectors[kVectors];

    GEMM_INLINE bool any() const {
      Integers all = vectors[0];
      for (size_t i = 1; i < kVectors; ++i) all |= vectors[i];
#if defined(__AVX__)
      if constexpr (kWidth == 8) return __builtin_ia32_movmskps256(reinterpret_cast<Vector>(all)) != 0;
#endif
      int64_t pairs[kWidth / 2], any = 0;
      __builtin_memcpy(pairs, &all, sizeof all);
      for (const int64_t pair : pairs) any |= pair;
      return any != 0;
    }
    GEMM_INLINE friend Mask operator&(const Mask& a, const Mask& b) {
      Mask both;
      for (size_t i = 0; i < kVectors; ++i) both.vectors[i] = a.vectors[i] & b.vectors[i];
      return both;
    }
    GEMM_INLINE friend Mask operator|(const Mask& a, const Mask& b) {
      Mask either;
      for (size_t i = 0; i < kVectors; ++i) either.vectors[i] = a.vectors[i] | b.vectors[i];
      return either;
    }
    GEMM_INLINE friend Mask operator!(const Mask& a) {
      Mask neither;
      for (size_t i = 0; i < kVectors; ++i) neither.vectors[i] = ~a.vectors[i];
      return neither;
    }
  };

  Vector vectors[kVectors];

  Lanes() = default;
  GEMM_INLINE Lanes(double all) {  // NOLINT(google-explicit-constructor): constants stand in formulas
    for (Vector& one : vectors)
      one = static_cast<float>(all) - Vector{};  // minus 0, since plus 0 would have to turn -0 into 0
  }
  GEMM_INLINE explicit Lanes(const float* from) { __builtin_memcpy(vectors, from, sizeof vectors); }
  GEMM_INLINE void store(float* to) const { __builtin_memcpy(to, vectors, sizeof vectors); }

#define GEMM_LANES_OPERATOR(result, op)                                                \
  GEMM_INLINE friend result operator op(const Lanes& a, const Lanes& b) {              \
    result r;                                                                          \
    for (size_t i = 0; i < kVectors; ++i) r.vectors[i] = a.vectors[i] op b.vectors[i]; \
    return r;                                                                          \
  }
  GEMM_LANES_OPERATOR(Lanes, +)
  GEMM_LANES_OPERATOR(Lanes, -)
  GEMM_LANES_OPERATOR(Lanes, *)
  GEMM_LANES_OPERATOR(Lanes, /)
  GEMM_LANES_OPERATOR(Mask, <)
  GEMM_LANES_OPERATOR(Mask, <=)
  GEMM_LANES_OPERATOR(Mask, >)
  GEMM_LANES_OPERATOR(Mask, >=)
  GEMM_LANES_OPERATOR(Mask, ==)
  GEMM_LANES_OPERATOR(Mask, !=)
#undef GEMM_LANES_OPERATOR

  GEMM_INLINE friend Lanes where(const Mask& mask, const Lanes& yes, const Lanes& no) {
    Lanes r;
    for (size_t i = 0; i < kVectors; ++i) r.vectors[i] = mask.vectors[i] ? yes.vectors[i] : no.vectors[i];
    return r;
  }
  GEMM_INLINE friend Lanes least(const Lanes& a, const Lanes& b) { return where(a < b, a, b); }
  GEMM_INLINE friend Lanes most(const Lanes& a, const Lanes& b) { return where(b < a, a, b); }
  GEMM_INLINE friend Lanes root(const Lanes& x) {
    float lanes[kCount];
    x.store(lanes);
    for (float& lane : lanes) lane = __builtin_sqrtf(lane);
    return Lanes(lanes);
  }
  // A positive number as 2^exponent times a mantissa from 1 to 2.
  GEMM_INLINE void take_apart(Lanes& exponent, Lanes& mantissa) const {
    for (size_t i = 0; i < kVectors; ++i) {
      const auto bits = reinterpret_cast<Integers>(vectors[i]);
      exponent.vectors[i] = __builtin_convertvector((bits >> 23) - 127, Vector);
      mantissa.vectors[i] = reinterpret_cast<Vector>((bits & 0x7fffff) | 0x3f800000);
    }
  }
  // Without its fraction; of numbers beyond 2^30 some number as large.
  GEMM_INLINE friend Lanes whole(const Lanes& x) {
    const Lanes bounded = least(x, 0x1p30);
    Lanes r;
    for (size_t i = 0; i < kVectors; ++i) {
      const Vector fraction = bounded.vectors[i];
      const Integers cut = __builtin_convertvector(fraction, Integers);
      r.vectors[i] = __builtin_convertvector(cut, Vector);
    }
    return r;
  }
};

// Rows of eight floats as the Lanes that they are. A copy cost a tenth of the search. The compiler takes structs of
// different types for different memory, so what was written to the rows is written before they are read as something else.
// Nothing may write to them as long as they are read so.
template <class T>
const T& laid_out_as(const void* rows) {
  asm("" : "+r"(rows) : : "memory");
  return *static_cast<const T*>(rows);
}

}  // namespace gemm
