// SPDX-License-Identifier: Apache-2.0
//
// E8M0 (UE8M0): a power-of-two scale in one byte. Byte B is 2^(B - 127); 255 is NaN. The format has
// no zero and no sign. Encoders round scales up so that the quotients do not overflow. The two
// encoders in use disagree for scales a few ulp above a power of two, so tests must not require
// equal bytes of both.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "reference/formats/nearest_even.h"

namespace plumb::reference {

// Exact. Other decoders flush byte 0, which is 2^-127, to 0, and read byte 255, which is NaN, as
// infinity. Quantisers avoid both bytes.
constexpr double decode_e8m0(std::uint8_t byte) {
  return byte == 255 ? std::numeric_limits<double>::quiet_NaN() : detail::power_of_two(byte - 127);
}

// ceil(log2(scale)) from the bits, as DeepGEMM computes it: the exponent field, plus one if any
// mantissa bit is set, clamped to 1..254. Exact for every normal scale up to 2^127. Never returns 0
// or 255: zero and subnormals become 2^-126; infinity, NaN and scales above 2^127 become 2^127.
// Ignores the sign.
constexpr std::uint8_t encode_e8m0_by_bits(float scale) {
  const auto bits = std::bit_cast<std::uint32_t>(scale);
  const std::uint32_t exponent = (bits >> 23 & 255) + ((bits & 0x7FFFFF) != 0 ? 1 : 0);
  return static_cast<std::uint8_t>(std::clamp<std::uint32_t>(exponent, 1, 254));
}

// ceil(log2f(scale)) with a correctly rounded fp32 log2f, as vLLM computes it, plus 127, clamped to
// 0..255. For a scale a few ulp above 2^k (1 ulp at k = 5, 2 at k = 9, 5 at k = 17) log2f rounds to
// k, so the byte is one less than encode_e8m0_by_bits returns. A device's log2f may have larger
// errors. Zero gives 0; infinity, NaN and negative scales give 255.
//
// Rounding the log2 of a double to float gives the correctly rounded log2f here: only the rounding
// at integers changes ceil, and no float's log2 is nearer than 2^-26 to a midpoint between an
// integer and the next float.
inline std::uint8_t encode_e8m0_by_log2(float scale) {
  if (!(scale >= 0)) return 255;
  const auto log2_scale = static_cast<float>(std::log2(double{scale}));
  return static_cast<std::uint8_t>(std::clamp(std::ceil(log2_scale) + 127.0f, 0.0f, 255.0f));
}

}  // namespace plumb::reference
