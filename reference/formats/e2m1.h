// SPDX-License-Identifier: Apache-2.0
//
// E2M1, the 4-bit elements of MXFP4: sign in bit 3 and eight magnitudes. Groups of 32 elements
// share a UE8M0 scale (e8m0.h). Code 8 reads as -0.
#pragma once

#include <array>
#include <cstdint>

#include "reference/formats/nearest_even.h"

namespace plumb::reference {

inline constexpr std::array<double, 8> kE2m1Magnitudes = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
// Ties: midpoints between neighbouring magnitudes.
inline constexpr std::array<double, 7> kE2m1Boundaries = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5};

// Code 0..15; the upper four bits are ignored.
constexpr double decode_e2m1(std::uint8_t code) {
  const double size = kE2m1Magnitudes[code & 7];
  return code & 8 ? -size : size;
}

// Two choices in which engines differ: how a tie between two codes is rounded, and whether a
// negative number that rounds to zero keeps its sign. The defaults are those of hardware.
enum class E2m1Ties { even, toward_zero, away };
struct E2m1Policy {
  E2m1Ties ties = E2m1Ties::even;
  bool zero_has_sign = true;
};

// Rounds to nearest. Larger numbers and infinity become 6. NaN becomes 0, because the format has no
// NaN.
constexpr std::uint8_t encode_e2m1(double value, E2m1Policy policy = {}) {
  const double size = detail::magnitude(value);
  int code = 0;
  while (code < 7 && size > kE2m1Boundaries[code]) ++code;
  const bool tie = code < 7 && size == kE2m1Boundaries[code];
  const bool up = policy.ties == E2m1Ties::away || (policy.ties == E2m1Ties::even && code % 2 == 1);
  if (tie && up) ++code;
  const bool has_sign = value == value && (code != 0 || policy.zero_has_sign);
  if (has_sign && detail::is_negative(value)) code |= 8;
  return static_cast<std::uint8_t>(code);
}

// Two codes in a byte: the element with the even index in the low nibble.
constexpr std::uint8_t pack_e2m1(std::uint8_t even, std::uint8_t odd) {
  return static_cast<std::uint8_t>((even & 15) | (odd & 15) << 4);
}
// Code of the even (`index` 0) or odd (`index` 1) element. Only the last bit of `index` counts.
constexpr std::uint8_t unpack_e2m1(std::uint8_t byte, int index) {
  return static_cast<std::uint8_t>(byte >> 4 * (index & 1) & 15);
}

}  // namespace plumb::reference
