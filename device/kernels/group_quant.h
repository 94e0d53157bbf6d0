// SPDX-License-Identifier: Apache-2.0
//
// What quantising kernels share: eight lanes of a wave quantise one group of values with one scale.
//
// Lane i of the eight owns elements i, i + 8, ..., or in vectors of eight columns (bf16.h) the
// vectors i, i + 8, .... All lanes of a wave stay in step for the shuffles, those without a group
// included. Any block that is a multiple of the wave.
#pragma once

#include "device/kernels/bf16.h"
#include "device/kernels/fp8.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kGroupLanes = 8;
constexpr int kQuantBlock = 128;

// Number of this thread's group in the grid, and its place among the eight lanes.
PLUMB_DEVICE inline std::int64_t group_index() {
  return (std::int64_t{block_index_x()} * block_size() + thread_index()) / kGroupLanes;
}
PLUMB_DEVICE inline int group_lane() { return thread_index() % kGroupLanes; }

// The largest of eight lanes' numbers, in each of them.
PLUMB_DEVICE inline float largest_of_lanes(float value) {
  for (int distance = kGroupLanes / 2; distance > 0; distance /= 2) {
    const float other = shuffle_xor(all_lanes(), value, distance, kGroupLanes);
    value = other > value ? other : value;
  }
  return value;
}

// max |x| of a group, the same in its eight lanes. A NaN among the values counts as nothing.
PLUMB_DEVICE inline float group_amax(const std::uint16_t* x, std::int64_t count) {
  float amax = 0;
  for (std::int64_t i = group_lane(); i < count; i += kGroupLanes) {
    const float size = bits_float(float_bits(load_bf16(x[i])) & 0x7fffffffU);
    amax = size > amax ? size : amax;
  }
  return largest_of_lanes(amax);
}

// This lane's vectors of a group.
template <int count>
struct GroupVectors {
  Bf16x8 at[count];
};

PLUMB_DEVICE inline int group_column(int vector) {
  return kBf16x8 * (group_lane() + kGroupLanes * vector);
}

// Zeros unless `live`.
template <int count>
PLUMB_DEVICE inline GroupVectors<count> load_group(const std::uint16_t* x, bool live, bool whole) {
  GroupVectors<count> group;
  PLUMB_UNROLL
  for (int v = 0; v < count; ++v) {
    group.at[v] = load_bf16x8(x + group_column(v), live ? kBf16x8 : 0, whole);
  }
  return group;
}

// As group_amax.
template <int count>
PLUMB_DEVICE inline float group_amax(const GroupVectors<count>& group) {
  float amax = 0;
  PLUMB_UNROLL
  for (int v = 0; v < count; ++v) {
    float x[kBf16x8];
    decode_bf16x8(group.at[v], x);
    PLUMB_UNROLL
    for (int i = 0; i < kBf16x8; ++i) {
      const float size = bits_float(float_bits(x[i]) & 0x7fffffffU);
      amax = size > amax ? size : amax;
    }
  }
  return largest_of_lanes(amax);
}

PLUMB_DEVICE inline void store_codes(std::uint8_t* to, const Vector<std::uint8_t, 8>& codes,
                                     bool whole) {
  if (whole) return store_vector(to, codes);
  PLUMB_UNROLL
  for (int i = 0; i < codes.kCount; ++i) to[i] = codes.at[i];
}

// Block of a slot, and token within it. Division of 64 bits costs several times that of 32.
struct SlotPlace {
  std::int64_t block, offset;
};
PLUMB_DEVICE inline SlotPlace place_of(std::int64_t slot, std::int32_t page) {
  const auto low = static_cast<std::uint32_t>(slot), divisor = static_cast<std::uint32_t>(page);
  if (slot == std::int64_t{low}) return {low / divisor, low % divisor};
  return {slot / page, slot % page};
}

// Whether a cache has whole vectors wherever a token's data starts in its block at a multiple
// of 16.
inline bool is_whole_cache(const plumb_paged_cache& cache) {
  return reinterpret_cast<std::uintptr_t>(cache.data) % 16 == 0 &&
         cache.block_stride_bytes % 16 == 0;
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

// Divisions are rounded correctly; nothing is summed.
inline plumb_numerics group_quant_numerics() {
  return {PLUMB_F32, PLUMB_F32, 1, PLUMB_F32, 0.5F, 1, 0};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
