// SPDX-License-Identifier: Apache-2.0
//
// bf16 in kernels: loads, and stores that round to nearest even, of one number or eight adjacent
// ones. Shares no code with reference/formats on purpose: a defect in one of them shows as a
// difference between kernel and reference.
#pragma once

#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

PLUMB_DEVICE inline float load_bf16(std::uint16_t bits) {
  return bits_float(static_cast<std::uint32_t>(bits) << 16);
}

PLUMB_DEVICE inline std::uint16_t store_bf16(float value) {
#ifdef PLUMB_NATIVE_BF16
  return native_bf16(value);
#else
  const std::uint32_t bits = float_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  // Adds half of the last kept place, or one unit less if that place is even: ties go to even.
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
}

// Eight adjacent numbers as four words; the one with the even index is in the low half.
using Bf16x8 = Vector<std::uint32_t>;
constexpr int kBf16x8 = 2 * Bf16x8::kCount;

PLUMB_DEVICE inline void decode_bf16x8(const Bf16x8& bits, float* values) {
  PLUMB_UNROLL
  for (int i = 0; i < Bf16x8::kCount; ++i) {
    values[2 * i] = bits_float(bits.at[i] << 16);
    values[2 * i + 1] = bits_float(bits.at[i] & 0xffff0000U);
  }
}

// Per half of a word: the larger of the magnitude in `so_far` and that of `pair`. A NaN in `pair`
// is ignored.
PLUMB_DEVICE inline std::uint32_t larger_bf16_sizes(std::uint32_t so_far, std::uint32_t pair) {
#ifdef PLUMB_NATIVE_BF16
  return native_larger_bf16_sizes(so_far, pair);
#else
  std::uint32_t larger = 0;
  for (const int shift : {0, 16}) {
    const std::uint32_t size = pair >> shift & 0x7fffU, least = so_far >> shift & 0xffffU;
    larger |= (size > least && size <= 0x7f80U ? size : least) << shift;
  }
  return larger;
#endif
}

PLUMB_DEVICE inline Bf16x8 round_bf16x8(const float* values) {
  Bf16x8 bits;
  PLUMB_UNROLL
  for (int i = 0; i < Bf16x8::kCount; ++i) {
#ifdef PLUMB_NATIVE_BF16
    bits.at[i] = native_bf16_pair(values[2 * i], values[2 * i + 1]);
#else
    bits.at[i] = store_bf16(values[2 * i]) | std::uint32_t{store_bf16(values[2 * i + 1])} << 16;
#endif
  }
  return bits;
}

// Loads the first `count` of eight numbers; the others are 0. `whole`: `from` is aligned for a
// vector, and count is at most 0 or at least 8.
PLUMB_DEVICE inline Bf16x8 load_bf16x8(const std::uint16_t* from, std::int64_t count, bool whole) {
  Bf16x8 bits{};
  if (whole) return count > 0 ? load_vector(reinterpret_cast<const std::uint32_t*>(from)) : bits;
  PLUMB_UNROLL
  for (int i = 0; i < kBf16x8; ++i) {
    if (i < count) bits.at[i / 2] |= std::uint32_t{from[i]} << (i % 2 * 16);
  }
  return bits;
}

PLUMB_DEVICE inline void store_bf16x8(std::uint16_t* to, const Bf16x8& bits, std::int64_t count,
                                      bool whole) {
  if (whole) {
    if (count > 0) store_vector(reinterpret_cast<std::uint32_t*>(to), bits);
    return;
  }
  PLUMB_UNROLL
  for (int i = 0; i < kBf16x8; ++i) {
    if (i < count) to[i] = static_cast<std::uint16_t>(bits.at[i / 2] >> (i % 2 * 16));
  }
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
