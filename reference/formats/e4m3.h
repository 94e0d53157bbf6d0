// SPDX-License-Identifier: Apache-2.0
//
// The two 8-bit floating-point dialects with 4 exponent and 3 mantissa bits. One byte per element,
// sign in bit 7. A byte that is finite and nonzero in both dialects is twice as large in fn as in
// fnuz.
//
//             bias   largest       least subnormal   NaN           -0
//   e4m3fn      7    448 (0x7E)    2^-9              0x7F, 0xFF    0x80     (OCP; NVIDIA, gfx950)
//   e4m3fnuz    8    240 (0x7F)    2^-10             0x80 only     none     (gfx942)
//
// Neither has infinities.
#pragma once

#include <array>
#include <cstdint>

#include "reference/formats/nearest_even.h"

namespace plumb::reference {

enum class Dialect { e4m3fn, e4m3fnuz };

// Result for a finite or infinite value that rounds past the largest finite one. NaN inputs give a
// NaN code with both settings.
enum class Overflow {
  saturate,  // the largest finite value of the same sign: CUDA's SATFINITE, AITER
  to_nan     // a NaN code: a PyTorch cast
};

constexpr int e4m3_bias(Dialect dialect) { return dialect == Dialect::e4m3fn ? 7 : 8; }
constexpr std::uint8_t e4m3_max_code(Dialect dialect) {
  return dialect == Dialect::e4m3fn ? 0x7E : 0x7F;
}
constexpr double e4m3_max(Dialect dialect) { return dialect == Dialect::e4m3fn ? 448 : 240; }
// Divisor of amax when a scale is computed from data: fnuz quantisers stop at 224, not at 240.
constexpr double e4m3_quantisation_max(Dialect dialect) {
  return dialect == Dialect::e4m3fn ? 448 : 224;
}

constexpr std::uint8_t e4m3_nan_code(Dialect dialect) {
  return dialect == Dialect::e4m3fn ? 0x7F : 0x80;
}

// Exact values of all 256 codes; NaN for NaN codes.
const std::array<double, 256>& e4m3_values(Dialect dialect);
inline double decode_e4m3(std::uint8_t code, Dialect dialect) { return e4m3_values(dialect)[code]; }

// Rounds to nearest, ties to even mantissa, including subnormals. A float argument converts to
// double exactly, so it is rounded only once.
//
// The first value after the largest one decides which numbers overflow. fn would have 480 next, and
// keeps numbers up to the tie 464, because the even neighbour is 448. fnuz would have 256 next, and
// keeps numbers below the tie 248, because the even neighbour is 256. NaN becomes 0x7F or 0xFF by
// its sign in fn, 0x80 in fnuz. Zeros and numbers that underflow keep their sign in fn; in fnuz
// they become 0x00, because 0x80 is its NaN.
constexpr std::uint8_t encode_e4m3(double value, Dialect dialect,
                                   Overflow overflow = Overflow::saturate) {
  const bool fnuz = dialect == Dialect::e4m3fnuz;
  const int sign = detail::is_negative(value) ? 0x80 : 0;
  const auto nan = static_cast<std::uint8_t>(fnuz ? 0x80 : sign | 0x7F);
  if (value != value) return nan;
  std::uint64_t code = detail::nearest_even_code(detail::magnitude(value), 3, e4m3_bias(dialect));
  if (code > e4m3_max_code(dialect)) {
    if (overflow == Overflow::to_nan) return nan;
    code = e4m3_max_code(dialect);
  }
  if (fnuz && code == 0) return 0;
  return static_cast<std::uint8_t>(sign | static_cast<int>(code));
}

}  // namespace plumb::reference
