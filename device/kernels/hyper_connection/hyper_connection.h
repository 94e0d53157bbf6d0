// SPDX-License-Identifier: Apache-2.0
//
// Shared by the kernels of the hyper-connection ops: sigmoid, a sum over the block, loads of eight
// columns of a token's four streams, their gated sum and their mixture.
#pragma once

#include <plumb/ops/hyper_connection.h>

#include <cstdint>
#include <initializer_list>

#include "device/kernels/bf16.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

inline constexpr int kStreams = 4;
// For kernels with one block per token. Thread t takes the vectors of eight columns (bf16.h) t, t +
// block, .... A block has no more threads than a row has vectors, rounded up to whole waves.
inline constexpr int kMostTokenThreads = 256;
inline constexpr int kMostWaves = 8;

inline LaunchShape token_shape(std::int64_t tokens, std::int64_t hidden, int wave) {
  const std::int64_t vectors = (hidden + kBf16x8 - 1) / kBf16x8;
  const std::int64_t rounds = (vectors + kMostTokenThreads - 1) / kMostTokenThreads;
  const std::int64_t threads = (vectors + rounds - 1) / rounds;
  return {tokens, 1, static_cast<int>((threads + wave - 1) / wave) * wave, 0};
}

// Whether kernels may access whole vectors: all these widths and strides are multiples of eight
// elements, and all these addresses multiples of 16 bytes.
inline bool are_whole(std::initializer_list<std::int64_t> lengths) {
  for (const std::int64_t length : lengths) {
    if (length % kBf16x8 != 0) return false;
  }
  return true;
}
template <class... Tensors>
bool start_whole(const Tensors*... tensors) {
  return ((reinterpret_cast<std::uintptr_t>(tensors) % 16 == 0) && ...);
}

PLUMB_DEVICE inline float sigmoid(float z) {
  constexpr float kLog2E = 1.44269504F;
  return 1.0F / (1.0F + exp2_approx(-z * kLog2E));
}

// Sum of `value` over all threads of the block, as a tree; each thread gets it. `per_wave`: shared
// memory for kMostWaves floats that no thread has used since the last barrier.
PLUMB_DEVICE inline float block_tree_sum(float value, float* per_wave) {
  for (int offset = wave_size() / 2; offset > 0; offset /= 2) {
    value += shuffle_xor(whole_wave(), value, offset, wave_size());
  }
  if (lane_index() == 0) per_wave[wave_index()] = value;
  block_sync();
  const int waves = block_size() / wave_size();
  float sums[kMostWaves];
  PLUMB_UNROLL
  for (int wave = 0; wave < kMostWaves; ++wave) sums[wave] = wave < waves ? per_wave[wave] : 0;
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

PLUMB_DEVICE inline float tree_sum_of_8(const float* values) {
  return ((values[0] + values[1]) + (values[2] + values[3])) +
         ((values[4] + values[5]) + (values[6] + values[7]));
}

// Eight columns of a token's four streams, as stored bits and as floats.
struct StreamBits {
  Bf16x8 at[kStreams];
};
struct StreamColumns {
  float at[kStreams][kBf16x8];
};

PLUMB_DEVICE inline StreamBits load_stream_bits(const std::uint16_t* streams,
                                                std::int64_t slot_stride, std::int64_t h,
                                                std::int64_t hidden, bool whole) {
  StreamBits bits;
  PLUMB_UNROLL
  for (int j = 0; j < kStreams; ++j) {
    bits.at[j] = load_bf16x8(streams + j * slot_stride + h, hidden - h, whole);
  }
  return bits;
}

PLUMB_DEVICE inline StreamColumns decode_streams(const StreamBits& bits) {
  StreamColumns columns;
  PLUMB_UNROLL
  for (int j = 0; j < kStreams; ++j) decode_bf16x8(bits.at[j], columns.at[j]);
  return columns;
}

PLUMB_DEVICE inline StreamColumns load_streams(const std::uint16_t* streams,
                                               std::int64_t slot_stride, std::int64_t h,
                                               std::int64_t hidden, bool whole) {
  return decode_streams(load_stream_bits(streams, slot_stride, h, hidden, whole));
}

// For each column: the sum over j, ascending, of gates[j] * streams[j, column].
PLUMB_DEVICE inline void gated_sum(const StreamColumns& streams, const float* gates, float* sums) {
  PLUMB_UNROLL
  for (int i = 0; i < kBf16x8; ++i) {
    sums[i] = gates[0] * streams.at[0][i];
    PLUMB_UNROLL
    for (int j = 1; j < kStreams; ++j) sums[i] += gates[j] * streams.at[j][i];
  }
}

// One column of stream n after a sublayer: post[n] * x + sum_m comb[m, n] * residual[m].
PLUMB_DEVICE inline float mixed_stream(const float* post, const float* comb, int n, float x,
                                       const float* residual) {
  float sum = post[n] * x;
  PLUMB_UNROLL
  for (int m = 0; m < kStreams; ++m) sum += comb[kStreams * m + n] * residual[m];
  return sum;
}

// Computes and stores eight columns, from h on, of all four streams.
PLUMB_DEVICE inline void store_mixed_columns(const plumb_mhc_post_params& p, std::int64_t token,
                                             std::int64_t h, const float* post, const float* comb,
                                             bool whole) {
  const Bf16x8 bits = load_bf16x8(p.x + token * p.hidden + h, p.hidden - h, whole);
  const StreamColumns residual = load_streams(p.residual + token * p.residual_token_stride,
                                              p.residual_slot_stride, h, p.hidden, whole);
  float x[kBf16x8], mixed[kBf16x8];
  decode_bf16x8(bits, x);
  PLUMB_UNROLL
  for (int n = 0; n < kStreams; ++n) {
    PLUMB_UNROLL
    for (int i = 0; i < kBf16x8; ++i) {
      const float column[kStreams] = {residual.at[0][i], residual.at[1][i], residual.at[2][i],
                                      residual.at[3][i]};
      mixed[i] = mixed_stream(post, comb, n, x[i], column);
    }
    store_bf16x8(p.out + token * p.out_token_stride + n * p.out_slot_stride + h,
                 round_bf16x8(mixed), p.hidden - h, whole);
  }
}

// Block b takes token b.
template <bool whole>
PLUMB_DEVICE inline void store_mixed_streams(const plumb_mhc_post_params& p) {
  const std::int64_t token = block_index_x();
  float post[kStreams], comb[kStreams * kStreams];
  PLUMB_UNROLL
  for (int n = 0; n < kStreams; ++n) post[n] = p.post[token * kStreams + n];
  PLUMB_UNROLL
  for (int i = 0; i < kStreams * kStreams; ++i) comb[i] = p.comb[token * kStreams * kStreams + i];
  for (std::int64_t h = thread_index() * kBf16x8; h < p.hidden; h += block_size() * kBf16x8) {
    store_mixed_columns(p, token, h, post, comb, whole);
  }
}

inline bool is_whole(const plumb_mhc_post_params& p) {
  return are_whole({p.hidden, p.residual_token_stride, p.residual_slot_stride, p.out_token_stride,
                    p.out_slot_stride}) &&
         start_whole(p.x, p.residual, p.out);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
