// SPDX-License-Identifier: Apache-2.0
//
// bfloat16 on the device, as the upper 16 bits of a float: load exactly, store to nearest even.
#pragma once

#include <cstdint>

#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

PLUMB_DEVICE float load_bf16(std::uint16_t bits) {
  return bits_float(static_cast<std::uint32_t>(bits) << 16);
}

PLUMB_DEVICE std::uint16_t store_bf16(float value) {
  const std::uint32_t bits = float_bits(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
