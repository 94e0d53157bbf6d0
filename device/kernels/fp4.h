// SPDX-License-Identifier: Apache-2.0
//
// E2M1 codes in kernels: encoder and decoder. Shares no code with reference/formats on purpose
// (fp8.h).
#pragma once

#include <plumb/ops/quantization.h>

#include <cstdint>

#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kMxGroup = 32;  // elements under one UE8M0 scale
constexpr float kLargestE2m1 = 6.0F;

PLUMB_DEVICE inline float decode_e2m1(std::uint32_t code) {
  constexpr float kSizes[] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  return code & 8U ? -kSizes[code & 7U] : kSizes[code & 7U];
}

// The code is the number of boundaries below |value|. A boundary that equals |value| counts if ties
// go away from zero, or if they go to even and the code so far is odd.
PLUMB_DEVICE inline std::uint32_t encode_e2m1(float value, plumb_ties ties,
                                              plumb_negative_zero negative_zero) {
  const bool to_even = ties == PLUMB_TIES_TO_EVEN, away = ties == PLUMB_TIES_AWAY;
  const bool zero_has_sign = negative_zero == PLUMB_NEGATIVE_ZERO_KEPT;
  const std::uint32_t bits = float_bits(value);
  const float size = bits_float(bits & 0x7fffffffU);
  std::uint32_t code = 0;
  for (const float boundary : {0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5.0F}) {
    const bool tie_up = away || (to_even && code % 2 == 1);
    const bool rounds_up = size > boundary || (size == boundary && tie_up);
    code += rounds_up ? 1U : 0U;
  }
  const bool negative = bits >> 31 != 0;
  return negative && (code != 0 || zero_has_sign) ? code | 8U : code;
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
