// SPDX-License-Identifier: Apache-2.0
//
// Rounding to nearest, ties to even, for small binary formats with subnormals. The functions work
// on the bits of a double, so a value computed in fp32 or in fp64 is rounded only once.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace plumb::reference::detail {

// Exact 2^exponent for -1022 <= exponent <= 1023. (std::ldexp is not constexpr in C++20.)
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

constexpr bool is_negative(double value) { return std::bit_cast<std::uint64_t>(value) >> 63 != 0; }

constexpr double magnitude(double value) { return is_negative(value) ? -value : value; }

// Code of the value nearest to `size` in a format with this bias and no largest exponent. The code
// is the exponent field followed by `mantissa_bits` bits of mantissa. An overflow, including the
// tie after the format's last value, gives a code larger than the format's last code. `size` is >=
// 0 or infinity, and not NaN. The format's least value must be far above 2^-1022.
constexpr std::uint64_t nearest_even_code(double size, int mantissa_bits, int bias) {
  constexpr std::uint64_t kImplicitOne = std::uint64_t{1} << 52;
  const auto bits = std::bit_cast<std::uint64_t>(size);
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  // Subnormal doubles have no implicit leading one. Adding it does no harm: they round to zero.
  const std::uint64_t significand = (bits & (kImplicitOne - 1)) | kImplicitOne;
  const int field = std::max(exponent + bias, 1);
  // Below the least normal value the spacing is constant, so more bits are dropped. At 63 or more
  // dropped bits nothing remains.
  const int dropped = std::min(52 - mantissa_bits + field - (exponent + bias), 63);
  const std::uint64_t odd = significand >> dropped & 1;
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  // The implicit leading one of a normal value, and a carry out of the mantissa, increment the
  // exponent field.
  return (static_cast<std::uint64_t>(field - 1) << mantissa_bits) +
         ((significand + half - 1 + odd) >> dropped);
}

}  // namespace plumb::reference::detail
