// SPDX-License-Identifier: Apache-2.0
//
// bfloat16: the upper half of an fp32 number, stored as std::uint16_t. All functions keep
// infinities and signed zeros, and turn every NaN into a quiet NaN of the same sign.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "reference/formats/nearest_even.h"

namespace plumb::reference {

namespace detail {

constexpr bool is_nan_f32(std::uint32_t bits) { return (bits & 0x7FFFFFFF) > 0x7F800000; }

// Upper half of an fp32 pattern; a NaN whose payload lies in the lower half stays a NaN.
constexpr std::uint16_t upper_half(std::uint32_t bits) {
  return static_cast<std::uint16_t>(bits >> 16 | (is_nan_f32(bits) ? 0x0040 : 0));
}

}  // namespace detail

inline constexpr std::uint16_t kInfinityBf16 = 0x7F80;

// Exact. Returns a double so that callers do not compute in fp32 by accident.
constexpr double decode_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

// Rounds to nearest, ties to even. From the largest finite value plus half a step on, the result is
// infinity.
constexpr std::uint16_t encode_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (detail::is_nan_f32(bits)) return detail::upper_half(bits);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// Rounds a double to nearest, ties to even, in one rounding. Converting to fp32 first would round
// twice and lose the bits that break a tie.
constexpr std::uint16_t encode_bf16(double value) {
  if (value != value) return encode_bf16(static_cast<float>(value));
  const std::uint64_t code = detail::nearest_even_code(detail::magnitude(value), 7, 127);
  const auto finite_or_infinite = std::min<std::uint64_t>(code, kInfinityBf16);
  return static_cast<std::uint16_t>(finite_or_infinite | (detail::is_negative(value) ? 0x8000 : 0));
}

// Rounds towards zero: drops the lower half of the fp32 pattern.
//
// g++ 12.2 at -O1 and above drops the mask from `c ? float_of(bits_of(v) & 0xFFFF0000) : v`.
// Inlining this function into `c ? decode_bf16(truncate_to_bf16(v)) : v` would give the same
// expression. The empty asm hides from the compiler that the bits come from `value`.
constexpr std::uint16_t truncate_to_bf16(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  if (!std::is_constant_evaluated()) asm("" : "+r"(bits));
  return detail::upper_half(bits);
}

}  // namespace plumb::reference
