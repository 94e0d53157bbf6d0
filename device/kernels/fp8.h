// SPDX-License-Identifier: Apache-2.0
//
// FP8 and its block scales in kernels: encoders and decoders. Shares no code with reference/formats
// on purpose: a defect in code that kernel and reference shared would show no difference.
#pragma once

#include <cstdint>

#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

PLUMB_DEVICE inline float quiet_nan() { return bits_float(0x7fc00000U); }

// e4m3fn has exponent bias 7 and the NaN codes 0x7f and 0xff; e4m3fnuz has bias 8, no negative
// zero, and 0x80 is its one NaN. Neither has infinities; every finite code is exact in bf16.
PLUMB_DEVICE inline float decode_e4m3(std::uint8_t code, plumb_format dialect) {
  const bool fnuz = dialect == PLUMB_E4M3FNUZ;
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x80U) << 24;
  const std::uint32_t exponent = code >> 3 & 15U, mantissa = code & 7U;
  if (fnuz ? code == 0x80U : (code & 0x7fU) == 0x7fU) return quiet_nan();
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * (fnuz ? 0x1p-10F : 0x1p-9F);
    return bits_float(float_bits(magnitude) | sign);
  }
  const std::uint32_t bias_change = 127U - (fnuz ? 8U : 7U);
  return bits_float(sign | (exponent + bias_change) << 23 | mantissa << 20);
}

// Rounds to nearest even and saturates. A NaN stays a NaN. e4m3fnuz has no negative zero: -0
// becomes 0, because 0x80 is its NaN.
PLUMB_DEVICE inline std::uint8_t encode_e4m3(float value, plumb_format dialect) {
  const bool fnuz = dialect == PLUMB_E4M3FNUZ;
  const std::uint32_t sign = float_bits(value) >> 24 & 0x80U;
  const std::uint32_t magnitude = float_bits(value) & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<std::uint8_t>(fnuz ? 0x80U : sign | 0x7fU);
  const std::uint32_t bias_change = 127U - (fnuz ? 8U : 7U), largest = fnuz ? 0x7fU : 0x7eU;
  std::uint32_t code = 0;
  if (magnitude < (bias_change + 1) << 23) {
    // The sum with 2^23 steps rounds a subnormal to whole steps. Their number is in the low bits.
    const float steps = fnuz ? 0x1p13F : 0x1p14F;
    code = float_bits(bits_float(magnitude) + steps) - float_bits(steps);
  } else {
    const std::uint32_t even = magnitude >> 20 & 1U;
    code = ((magnitude + 0x7ffffU + even) >> 20) - (bias_change << 3);
  }
  code = code > largest ? largest : code;
  if (fnuz && code == 0) return 0;
  return static_cast<std::uint8_t>(sign | code);
}

// Sixteen adjacent codes, four per word, the first in the lowest byte, as in memory.
using E4m3x16 = Vector<std::uint32_t>;
constexpr int kE4m3x16 = 4 * E4m3x16::kCount;

PLUMB_DEVICE inline std::uint32_t encode_e4m3x4(const float* values, plumb_format dialect) {
#ifdef PLUMB_NATIVE_E4M3FN
  if (dialect == PLUMB_E4M3FN) {
    return native_e4m3fn_pair(values[0], values[1]) |
           std::uint32_t{native_e4m3fn_pair(values[2], values[3])} << 16;
  }
#endif
  std::uint32_t codes = 0;
  PLUMB_UNROLL
  for (int i = 0; i < 4; ++i) codes |= std::uint32_t{encode_e4m3(values[i], dialect)} << (8 * i);
  return codes;
}

PLUMB_DEVICE inline E4m3x16 encode_e4m3x16(const float* values, plumb_format dialect) {
  E4m3x16 codes;
  PLUMB_UNROLL
  for (int i = 0; i < codes.kCount; ++i) codes.at[i] = encode_e4m3x4(values + 4 * i, dialect);
  return codes;
}

// Value that quantisers scale the largest element to. For e4m3fnuz it is 224, although 240 exists.
PLUMB_DEVICE inline float quantisation_largest(plumb_format dialect) {
  return dialect == PLUMB_E4M3FNUZ ? 224.0F : 448.0F;
}

// Code of the smallest power of two that is at least `scale`, which is positive. Uses its bits.
PLUMB_DEVICE inline std::uint8_t encode_ue8m0(float scale) {
  const std::uint32_t bits = float_bits(scale);
  const std::uint32_t code = (bits >> 23) + ((bits & 0x7fffffU) != 0 ? 1U : 0U);
  return static_cast<std::uint8_t>(code < 1U ? 1U : code > 254U ? 254U : code);
}

// UE8M0: 2^(code - 127). Code 0 is a subnormal float, 255 is NaN.
PLUMB_DEVICE inline float decode_ue8m0(std::uint8_t code) {
  if (code == 0xffU) return quiet_nan();
  return bits_float(code == 0 ? 0x00400000U : static_cast<std::uint32_t>(code) << 23);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
