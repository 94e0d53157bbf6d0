// SPDX-License-Identifier: Apache-2.0
//
// Shared by quantising kernels: some lanes of a wave quantise one group of values with one scale.
//
// Either eight lanes share a group, and lane i has elements i, i + 8, .... Or, in kernels of whole
// tokens, a lane has sixteen adjacent columns, and a group has as many lanes as its columns need.
// All lanes of a wave take part in the shuffles, also those without a group. Blocks: any multiple
// of the wave.
#pragma once

#include <plumb/ops/cache.h>

#include "device/kernels/bf16.h"
#include "device/kernels/fp8.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kGroupLanes = 8;
constexpr int kQuantBlock = 128;

// Number of this thread's group in the grid, and its lane within the group.
PLUMB_DEVICE inline std::int64_t group_index() {
  return (std::int64_t{block_index_x()} * block_size() + thread_index()) / kGroupLanes;
}
PLUMB_DEVICE inline int group_lane(int lanes = kGroupLanes) { return thread_index() % lanes; }

// The largest `value` of `lanes` adjacent lanes; each of them gets it.
PLUMB_DEVICE inline float largest_of_lanes(float value, int lanes = kGroupLanes) {
  PLUMB_UNROLL
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    const float other = shuffle_xor(whole_wave(), value, distance, lanes);
    value = other > value ? other : value;
  }
  return value;
}

// max |x| of a group; its eight lanes all get it. A NaN is ignored.
PLUMB_DEVICE inline float group_amax(const std::uint16_t* x, std::int64_t count) {
  float amax = 0;
  for (std::int64_t i = group_lane(); i < count; i += kGroupLanes) {
    const float size = bits_float(float_bits(load_bf16(x[i])) & 0x7fffffffU);
    amax = size > amax ? size : amax;
  }
  return largest_of_lanes(amax);
}

// Sixteen adjacent columns.
struct LaneColumns {
  Bf16x8 at[2];
};
constexpr int kLaneColumns = 2 * kBf16x8;
static_assert(kLaneColumns == kE4m3x16);

// Loads sixteen adjacent columns from `x` on. All are zeros unless `live`.
PLUMB_DEVICE inline LaneColumns load_columns(const std::uint16_t* x, bool live, bool whole) {
  const int count = live ? kBf16x8 : 0;
  return {{load_bf16x8(x, count, whole), load_bf16x8(x + kBf16x8, count, whole)}};
}

PLUMB_DEVICE inline void decode_columns(const LaneColumns& bits, float* x) {
  decode_bf16x8(bits.at[0], x);
  decode_bf16x8(bits.at[1], x + kBf16x8);
}

// max |x| over the columns of `lanes` adjacent lanes; all get it. A NaN is ignored.
PLUMB_DEVICE inline float columns_amax(const LaneColumns& bits, int lanes) {
  std::uint32_t sizes = 0;
  PLUMB_UNROLL
  for (int i = 0; i < 2 * Bf16x8::kCount; ++i) {
    sizes = larger_bf16_sizes(sizes, bits.at[i / Bf16x8::kCount].at[i % Bf16x8::kCount]);
  }
  const float even = bits_float(sizes << 16), odd = bits_float(sizes & 0xffff0000U);
  return largest_of_lanes(even > odd ? even : odd, lanes);
}

PLUMB_DEVICE inline void store_codes(std::uint8_t* to, const E4m3x16& codes, bool whole) {
  if (whole) return store_vector(reinterpret_cast<std::uint32_t*>(to), codes);
  PLUMB_UNROLL
  for (int i = 0; i < kE4m3x16; ++i) {
    to[i] = static_cast<std::uint8_t>(codes.at[i / 4] >> (i % 4 * 8));
  }
}

// The inverse of a divisor as the sum of two floats. `high` is not above the exact inverse, so that
// `low` is not negative, and -0 times the sum is -0.
struct LongInverse {
  float high, low;
};

// For divisors from 2^-126, the smallest normal number, to kMostInverted: `low` is then a normal
// number or zero. `fma` must round once.
constexpr float kMostInverted = 0x1p100F;
template <class Fma>
PLUMB_DEVICE inline LongInverse long_inverse(float divisor, const Fma& fma) {
  float high = 1.0F / divisor, rest = fma(-high, divisor, 1.0F);
  if (rest < 0) {
    high = bits_float(float_bits(high) - 1);
    rest = fma(-high, divisor, 1.0F);
  }
  return {high, rest * high};
}

// x / divisor, rounded as a division rounds it, for a bf16 x and a scale computed from a bf16
// number. The product has a small error, but no such quotient is that close to the middle of two
// floats.
template <class Fma>
PLUMB_DEVICE inline float quotient(float x, const LongInverse& inverse, const Fma& fma) {
  return fma(x, inverse.high, x * inverse.low);
}

// x[i] /= scale. The multiplication gives the same bits as the division and is much cheaper.
PLUMB_DEVICE inline void divide_columns(float* x, float scale) {
#ifdef PLUMB_NATIVE_FMA
  if (scale <= kMostInverted) {
    const auto fma = [](float a, float b, float c) { return native_fma(a, b, c); };
    const LongInverse inverse = long_inverse(scale, fma);
    PLUMB_UNROLL
    for (int i = 0; i < kLaneColumns; ++i) x[i] = quotient(x[i], inverse, fma);
    return;
  }
#endif
  PLUMB_UNROLL
  for (int i = 0; i < kLaneColumns; ++i) x[i] /= scale;
}

// Cache block of a slot, and the token's number in it. Divides in 32 bits if it can: a division of
// 64 bits costs several times as much.
struct SlotPlace {
  std::int64_t block, offset;
};
PLUMB_DEVICE inline SlotPlace place_of(std::int64_t slot, std::int32_t page) {
  const auto low = static_cast<std::uint32_t>(slot), divisor = static_cast<std::uint32_t>(page);
  if (slot == std::int64_t{low}) return {low / divisor, low % divisor};
  return {slot / page, slot % page};
}

// The slot to which a token is written, or kNoSlot if the token is skipped.
constexpr std::int64_t kNoSlot = std::int64_t{1} << 63;
template <class P>
PLUMB_DEVICE inline std::int64_t slot_of(const P& p, std::int64_t token) {
  if (token >= p.tokens) return kNoSlot;
  const std::int64_t slot = p.slot_mapping[token];
  const bool skipped =
      p.skip == PLUMB_SKIP_NEGATIVE ? slot < 0 : p.skip == PLUMB_SKIP_MINUS_ONE && slot == -1;
  return skipped ? kNoSlot : slot;
}

// Whether accesses to a cache may be whole vectors, if tokens start at multiples of 16 bytes in a
// block.
inline bool is_whole_cache(const plumb_paged_cache& cache) {
  return reinterpret_cast<std::uintptr_t>(cache.data) % 16 == 0 &&
         cache.block_stride_bytes % 16 == 0;
}
inline bool legal_page(const plumb_paged_cache& cache) {
  return cache.page >= 1 && fits_int(cache.page);
}

inline bool are_whole_rows(const std::uint16_t* x, std::int64_t row_stride) {
  return reinterpret_cast<std::uintptr_t>(x) % 16 == 0 && row_stride % kBf16x8 == 0;
}

PLUMB_DEVICE inline float at_least(float floor, float value) {
  return value > floor ? value : floor;
}

inline std::int64_t blocks_for_groups(std::int64_t groups) {
  constexpr std::int64_t kPerBlock = kQuantBlock / kGroupLanes;
  return (groups + kPerBlock - 1) / kPerBlock;
}

// Divisions are rounded correctly (0.5 ulp). Nothing is summed.
inline plumb_numerics group_quant_numerics() {
  return {.product = PLUMB_F32,
          .accumulator = PLUMB_F32,
          .chains = 1,
          .probability = PLUMB_F32,
          .function_ulp = 0.5F,
          .deterministic = 1};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
