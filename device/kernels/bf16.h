// SPDX-License-Identifier: Apache-2.0
//
// bf16 as kernels load and store it: 16 bits, nearest even on the way out. Written apart from
// reference/formats by intent, so that the two cannot be wrong together.
#pragma once

#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

PLUMB_DEVICE inline float load_bf16(std::uint16_t bits) {
  return bits_float(static_cast<std::uint32_t>(bits) << 16);
}

PLUMB_DEVICE inline std::uint16_t store_bf16(float value) {
  const std::uint32_t bits = float_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  // Half of the last kept place, less one where that place is even: ties go to even.
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
