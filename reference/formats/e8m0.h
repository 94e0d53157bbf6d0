// SPDX-License-Identifier: Apache-2.0
//
// E8M0 (UE8M0): a power-of-two scale in one byte. Byte B means 2^(B - 127); 255 is NaN. No zero, no
// sign. Scales are rounded up, so that what is divided by them does not overflow. The two encoders
// in use disagree for scales a few ulp above a power of two: never ask them for equal bytes.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/formats/nearest_even.h"

namespace plumb::reference {

// Exact. Byte 0 is 2^-127, which other decoders flush or take for 0, and byte 255 is NaN, which
// others take for infinity: quantisers keep away from both.
constexpr double decode_e8m0(std::uint8_t byte) {
  return byte == 255 ? std::numeric_limits<double>::quiet_NaN() : detail::power_of_two(byte - 127);
}

// ceil(log2(scale)) from the bits, as DeepGEMM does: the exponent field, plus one if any mantissa
// bit is set, clamped to 1..254. Exact for every normal scale up to 2^127. Never gives 0 or 255:
// zero and subnormals become 2^-126; infinity, NaN and all beyond 2^127 become 2^127. Ignores the
// sign.
constexpr std::uint8_t encode_e8m0_by_bits(float scale) {
  const auto bits = std::bit_cast<std::uint32_t>(scale);
  const std::uint32_t exponent = (bits >> 23 & 255) + ((bits & 0x7FFFFF) != 0 ? 1 : 0);
  return static_cast<std::uint8_t>(std::clamp<std::uint32_t>(exponent, 1, 254));
}

// ceil(log2f(scale)) with log2f rounded correctly to fp32, as vLLM does, plus 127, clamped to
// 0..255. For a scale a few ulp above 2^k (1 at k = 5, 2 at 9, 5 at 17) log2f is k, and the byte is
// one less than by the bits. A device's log2f may err more. Zero gives 0; infinity, NaN and
// negative scales 255.
//
// Rounding a double's log2 gives the same: only the rounding at integers matters to ceil, and no
// float's log2 comes nearer than 2^-26 to a midpoint between an integer and the next float.
inline std::uint8_t encode_e8m0_by_log2(float scale) {
  if (!(scale >= 0)) return 255;
  const auto log2_scale = static_cast<float>(std::log2(double{scale}));
  return static_cast<std::uint8_t>(std::clamp(std::ceil(log2_scale) + 127.0f, 0.0f, 255.0f));
}

}  // namespace plumb::reference
