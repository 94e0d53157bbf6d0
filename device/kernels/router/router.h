// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of the MoE router share. A wave takes a token: lane l has experts l, l + wave,
// ..., in registers, and waves talk by shuffles alone, so no kernel here has a barrier.
#pragma once

#include <cmath>
#include <cstdint>

#include "device/kernels/bf16.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kMostExperts = 1024;
constexpr int kMostRanksPerLane = 32;  // of a wave of 32
constexpr int kMostTopk = 32;          // a lane each
constexpr int kRouterBlock = 128;

// Functions within 2 ulp, sums of at most 32 terms as a tree.
inline plumb_numerics router_numerics() {
  return {.product = PLUMB_F32,
          .accumulator = PLUMB_F32,
          .chains = kMostTopk,
          .probability = PLUMB_F32,
          .function_ulp = 2.0f,
          .deterministic = 1};
}

inline LaunchShape router_shape(std::int64_t tokens, int wave) {
  const int per_block = kRouterBlock / wave;
  return {(tokens + per_block - 1) / per_block, 1, kRouterBlock, 0};
}

inline bool is_legal_router(std::int64_t tokens, std::int64_t row_stride, std::int64_t experts,
                            std::int64_t topk, plumb_format format) {
  if (tokens < 0 || experts < 1 || row_stride < experts) return false;
  if (topk < 1 || topk > kMostTopk || topk > experts) return false;
  return format == PLUMB_F32 || format == PLUMB_BF16;
}

// `params`: of each op of the router.
template <class Params>
bool legal_outputs(const Params& p) {
  return p.weights_row_stride >= p.topk && p.ids_row_stride >= p.topk;
}

// Lane k of the token's wave writes its expert at rank k.
template <class Params>
PLUMB_DEVICE void store_expert(const Params& p, std::int64_t token, int id, float weight) {
  p.ids[token * p.ids_row_stride + lane_index()] = id;
  p.weights[token * p.weights_row_stride + lane_index()] = weight;
}

PLUMB_DEVICE inline std::int64_t token_of_wave() {
  const std::int64_t waves = block_size() / wave_size();
  return block_index_x() * waves + wave_index();
}

PLUMB_DEVICE inline float load_logit(const void* logits, plumb_format format, std::int64_t i) {
  if (format == PLUMB_BF16) return load_bf16(static_cast<const std::uint16_t*>(logits)[i]);
  return static_cast<const float*>(logits)[i];
}

// -inf < ... < -0 < +0 < ... < +inf < NaN, as unsigned numbers.
PLUMB_DEVICE inline std::uint32_t choice_key(float choice) {
  if (choice != choice) return 0xffffffffu;
  const std::uint32_t bits = float_bits(choice);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// Of equal choices the smaller id ranks higher. Its own inverse.
PLUMB_DEVICE inline std::uint32_t rank_of_id(std::uint32_t id) { return 0xffffffffu - id; }

// Choice and id in one number, never 0.
PLUMB_DEVICE inline std::uint64_t rank_of(float choice, int id) {
  return static_cast<std::uint64_t>(choice_key(choice)) << 32 |
         rank_of_id(static_cast<std::uint32_t>(id));
}

PLUMB_DEVICE inline int id_of(std::uint64_t rank) {
  return static_cast<int>(rank_of_id(static_cast<std::uint32_t>(rank)));
}

PLUMB_DEVICE inline std::uint64_t wave_max(std::uint64_t value) {
  for (int distance = wave_size() / 2; distance > 0; distance /= 2) {
    const std::uint64_t other = shuffle_xor(all_lanes(), value, distance, wave_size());
    if (other > value) value = other;
  }
  return value;
}

// The same bits in every lane.
PLUMB_DEVICE inline float lanes_sum(float value) {
  for (int distance = wave_size() / 2; distance > 0; distance /= 2) {
    value += shuffle_xor(all_lanes(), value, distance, wave_size());
  }
  return value;
}

// Takes the k highest ranks out of the wave's, `count` per lane. Lane i < k gets the i-th's id.
PLUMB_DEVICE inline int pick_best(std::uint64_t* ranks, int count, int k) {
  int mine = 0;
  for (int place = 0; place < k; ++place) {
    std::uint64_t best = 0;
    for (int i = 0; i < count; ++i) best = ranks[i] > best ? ranks[i] : best;
    best = wave_max(best);
    for (int i = 0; i < count; ++i) {
      if (ranks[i] == best) ranks[i] = 0;
    }
    if (lane_index() == place) mine = id_of(best);
  }
  return mine;
}

// sqrt(ln(1 + e^x)), and 0 for NaN. Above 20 the logarithm is x itself, and e^x would overflow.
PLUMB_DEVICE inline float sqrt_softplus(float x) {
  constexpr float kLog2E = 1.44269504F, kLn2 = 0.693147181F;
  if (x != x) return 0.0F;
  const float softplus = x > 20.0F ? x : log2_approx(1.0F + exp2_approx(x * kLog2E)) * kLn2;
  if (softplus == 0.0F || softplus == INFINITY) return softplus;
  return softplus * rsqrt_approx(softplus);
}

// A row whose scores all vanished divides by 1: weights 0, not NaN.
PLUMB_DEVICE inline float divisor_of(float sum) { return sum > 0.0F ? sum : 1.0F; }

}  // namespace plumb::device::PLUMB_KERNEL_SET
