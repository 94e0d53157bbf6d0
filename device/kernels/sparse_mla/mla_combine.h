// SPDX-License-Identifier: Apache-2.0
//
// Combines the partial results of a split request. Partial outputs are normalised, without the
// attention sink, and have their log-sum-exp in base 2.
#pragma once

#include <cmath>
#include <cstdint>

#include "device/kernels/sparse_mla/mla_attend.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

PLUMB_DEVICE inline float wave_max(float value) {
  for (int step = wave_size() / 2; step > 0; step /= 2) {
    const float other = shuffle_xor(all_lanes(), value, step, wave_size());
    value = other > value ? other : value;
  }
  return value;
}

PLUMB_DEVICE inline float wave_sum(float value) {
  for (int step = wave_size() / 2; step > 0; step /= 2) {
    value += shuffle_xor(all_lanes(), value, step, wave_size());
  }
  return value;
}

// log2 of the sum of 2^lse over `splits` entries `stride` apart; +infinity if none has a candidate.
// One whole wave calls it.
PLUMB_DEVICE inline float combined_lse(const float* lse, int splits, std::int64_t stride) {
  float largest = -INFINITY;
  for (int i = lane_index(); i < splits; i += wave_size()) {
    largest = lse[i * stride] > largest ? lse[i * stride] : largest;
  }
  largest = wave_max(largest);
  if (largest == -INFINITY) return INFINITY;
  float sum = 0;
  for (int i = lane_index(); i < splits; i += wave_size()) {
    sum += exp2_approx(lse[i * stride] - largest);
  }
  return log2_approx(wave_sum(sum)) + largest;
}

// `lse` with the sink (a logit in base e) as one more term, whose value is zero.
PLUMB_DEVICE inline float add_sink(float lse, float sink) {
  if (lse != INFINITY) return lse + log2_approx(1.0F + exp2_approx(sink * kLog2E - lse));
  return sink == -INFINITY ? INFINITY : sink * kLog2E;
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
