// SPDX-License-Identifier: Apache-2.0
//
// The row body that the RMSNorm family shares: one block normalises one row of bf16 in fp32.
//
// Thread t owns columns t, t + block, ...: its squares are one sequential chain, the chains of a
// wave are joined by shuffles, those of the block through shared memory. Any block that is a
// multiple of the wave, any hidden size.
#pragma once

#include "device/kernels/bf16.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kRowNormBlock = 256;
constexpr int kMostWavesOfRowNorm = 8;

PLUMB_DEVICE inline float sum_of_lanes(float value) {
  for (int distance = wave_size() / 2; distance > 0; distance /= 2) {
    value += shuffle_xor(all_lanes(), value, distance, wave_size());
  }
  return value;
}

// Sum over the block, the same bits in every thread. One call per kernel: the partials are not
// protected against a second one.
PLUMB_DEVICE inline float sum_of_threads(float value, float* wave_partials) {
  const float of_wave = sum_of_lanes(value);
  if (lane_index() == 0) wave_partials[wave_index()] = of_wave;
  block_sync();
  float total = 0;
  for (int wave = 0; wave < block_size() / wave_size(); ++wave) total += wave_partials[wave];
  return total;
}

// 1 / sqrt(mean(x^2) + eps) of the row whose column i is x_of(i); one call per kernel.
template <class Column>
PLUMB_DEVICE inline float reciprocal_rms(const Column& x_of, std::int64_t hidden, float eps,
                                         float* wave_partials) {
  float squares = 0;
  for (std::int64_t i = thread_index(); i < hidden; i += block_size()) {
    const float value = x_of(i);
    squares += value * value;
  }
  const float mean = sum_of_threads(squares, wave_partials) / static_cast<float>(hidden);
  return rsqrt_approx(mean + eps);
}

// One column, x r weight, as it is stored. No weight counts as 1.
PLUMB_DEVICE inline std::uint16_t normalized(float x, float r, const std::uint16_t* weight,
                                             std::int64_t column, bool round_twice) {
  float scaled = x * r;
  if (round_twice) scaled = load_bf16(store_bf16(scaled));
  return store_bf16(weight ? scaled * load_bf16(weight[column]) : scaled);
}

// out[i] = x[i] * r * weight[i]. `keep` false: x counts as zero.
PLUMB_DEVICE inline void normalize_row(const std::uint16_t* x, const std::uint16_t* weight,
                                       std::uint16_t* out, std::int64_t hidden, float eps,
                                       bool keep, bool round_twice, float* wave_partials) {
  const auto x_of = [=](std::int64_t i) { return keep ? load_bf16(x[i]) : 0.0f; };
  const float r = reciprocal_rms(x_of, hidden, eps, wave_partials);
  for (std::int64_t i = thread_index(); i < hidden; i += block_size()) {
    out[i] = normalized(x_of(i), r, weight, i, round_twice);
  }
}

// fp32 throughout, `block` chains per row, rsqrt within two ulp on every back end.
inline plumb_numerics row_norm_numerics() {
  return {PLUMB_F32, PLUMB_F32, kRowNormBlock, PLUMB_F32, 2.0f, 1, 0};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
