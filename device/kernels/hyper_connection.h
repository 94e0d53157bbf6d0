// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of the hyper-connection ops share: sigmoid, a sum over the block, and the gated
// sum of a token's four streams.
#pragma once

#include <cstdint>

#include "device/kernels/bf16.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

inline constexpr int kStreams = 4;
// Kernels with one block per token: a power of two of waves, no more than the row has use for.
inline constexpr int kMostTokenThreads = 256;
inline constexpr int kMostWaves = 8;

inline LaunchShape token_shape(std::int64_t tokens, std::int64_t hidden, int wave) {
  int block = wave;
  while (block < hidden && block < kMostTokenThreads) block *= 2;
  return {tokens, 1, block, 0};
}

PLUMB_DEVICE inline float sigmoid(float z) {
  constexpr float kLog2E = 1.44269504F;
  return 1.0F / (1.0F + exp2_approx(-z * kLog2E));
}

// The sum of `value` over all threads, as a tree; every thread gets it. `per_wave` is shared memory
// for kMostWaves numbers that nobody has used since the last barrier.
PLUMB_DEVICE inline float block_tree_sum(float value, float* per_wave) {
  for (int offset = wave_size() / 2; offset > 0; offset /= 2) {
    value += shuffle_xor(all_lanes(), value, offset, wave_size());
  }
  if (lane_index() == 0) per_wave[wave_index()] = value;
  block_sync();
  const int waves = block_size() / wave_size();
  float sums[kMostWaves];
  for (int wave = 0; wave < waves; ++wave) sums[wave] = per_wave[wave];
  for (int half = waves / 2; half > 0; half /= 2) {
    for (int wave = 0; wave < half; ++wave) sums[wave] += sums[wave + half];
  }
  return sums[0];
}

// sum_j gates[j] * streams[j, h], j ascending.
PLUMB_DEVICE inline float gated_sum(const std::uint16_t* streams, std::int64_t slot_stride,
                                    std::int64_t h, const float* gates) {
  float sum = gates[0] * load_bf16(streams[h]);
  for (int j = 1; j < kStreams; ++j) sum += gates[j] * load_bf16(streams[j * slot_stride + h]);
  return sum;
}

// Stream n of a token at column h after a sublayer: post[n] x + sum_m comb[m, n] residual[m].
PLUMB_DEVICE inline float mixed_stream(const plumb_mhc_post_params& p, std::int64_t token, int n,
                                       std::int64_t h) {
  const std::uint16_t* residual = p.residual + token * p.residual_token_stride + h;
  const float* comb = p.comb + token * kStreams * kStreams;
  float sum = p.post[token * kStreams + n] * load_bf16(p.x[token * p.hidden + h]);
  for (int m = 0; m < kStreams; ++m) {
    sum += comb[kStreams * m + n] * load_bf16(residual[m * p.residual_slot_stride]);
  }
  return sum;
}

// Block b takes token b; its threads share the columns.
PLUMB_DEVICE inline void store_mixed_streams(const plumb_mhc_post_params& p) {
  const std::int64_t token = block_index_x();
  for (std::int64_t h = thread_index(); h < p.hidden; h += block_size()) {
    for (int n = 0; n < kStreams; ++n) {
      p.out[(token * kStreams + n) * p.hidden + h] = store_bf16(mixed_stream(p, token, n, h));
    }
  }
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
