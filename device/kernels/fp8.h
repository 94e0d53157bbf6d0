// SPDX-License-Identifier: Apache-2.0
//
// FP8 and its block scales on the device. Written apart from reference/formats by intent: a defect
// that both sides shared would be seen by neither.
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

// UE8M0: 2^(code - 127); code 0 is a subnormal float, 255 is NaN.
PLUMB_DEVICE inline float decode_ue8m0(std::uint8_t code) {
  if (code == 0xffU) return quiet_nan();
  return bits_float(code == 0 ? 0x00400000U : static_cast<std::uint32_t>(code) << 23);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
