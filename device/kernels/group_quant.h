// SPDX-License-Identifier: Apache-2.0
//
// What quantising kernels share: eight lanes of a wave quantise one group of values with one scale.
//
// Lane i of the eight owns elements i, i + 8, .... All lanes of a wave stay in step for the
// shuffles, those without a group included. Any block that is a multiple of the wave.
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

// max |x| of a group, the same in its eight lanes. A NaN among the values counts as nothing.
PLUMB_DEVICE inline float group_amax(const std::uint16_t* x, std::int64_t count) {
  float amax = 0;
  for (std::int64_t i = group_lane(); i < count; i += kGroupLanes) {
    const float size = bits_float(float_bits(load_bf16(x[i])) & 0x7fffffffU);
    amax = size > amax ? size : amax;
  }
  for (int distance = kGroupLanes / 2; distance > 0; distance /= 2) {
    const float other = shuffle_xor(all_lanes(), amax, distance, kGroupLanes);
    amax = other > amax ? other : amax;
  }
  return amax;
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
