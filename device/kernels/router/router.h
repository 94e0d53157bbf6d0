// SPDX-License-Identifier: Apache-2.0
//
// Shared by the kernels of the MoE router. A wave takes a token. Lane l has experts l, l + wave
// size, ..., in registers. Lanes exchange values by shuffles alone, so no kernel here has a
// barrier.
#pragma once

#include <plumb/ops/router.h>

#include <cmath>
#include <cstdint>

#include "device/kernels/bf16.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kMostExperts = 1024;
constexpr int kMostRanksPerLane = 32;  // kMostExperts over the 32 lanes of a wave
constexpr int kMostTopk = 32;          // each chosen expert takes one lane
constexpr int kRouterBlock = 128;

// Functions are within 2 ulp. Sums have at most 32 terms and are trees.
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

// `Params`: the parameters of any router op.
template <class Params>
bool legal_outputs(const Params& p) {
  return p.weights_row_stride >= p.topk && p.ids_row_stride >= p.topk;
}

// Lane k of the token's wave stores the expert with rank k.
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

// Key of a choice value. Keys are unsigned and ascend so: -inf, ..., -0, +0, ..., +inf, NaN.
PLUMB_DEVICE inline std::uint32_t choice_key(float choice) {
  if (choice != choice) return 0xffffffffu;
  const std::uint32_t bits = float_bits(choice);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// Among equal choices the smaller id ranks higher, with PLUMB_ROUTER_TIES_ANY the larger id. The
// function is its own inverse.
PLUMB_DEVICE inline std::uint32_t rank_of_id(plumb_router_ties ties, std::uint32_t id) {
  return ties == PLUMB_ROUTER_TIES_LOWER_ID ? 0xffffffffu - id : id;
}

// Choice and id in one number. It is never 0, because no choice has the key 0.
PLUMB_DEVICE inline std::uint64_t rank_of(plumb_router_ties ties, float choice, int id) {
  return static_cast<std::uint64_t>(choice_key(choice)) << 32 |
         rank_of_id(ties, static_cast<std::uint32_t>(id));
}

PLUMB_DEVICE inline int id_of(plumb_router_ties ties, std::uint64_t rank) {
  return static_cast<int>(rank_of_id(ties, static_cast<std::uint32_t>(rank)));
}

PLUMB_DEVICE inline std::uint64_t wave_max(std::uint64_t value) {
  for (int distance = wave_size() / 2; distance > 0; distance /= 2) {
    const std::uint64_t other = shuffle_xor(all_lanes(), value, distance, wave_size());
    if (other > value) value = other;
  }
  return value;
}

// Sum over the wave, the same bits in every lane.
PLUMB_DEVICE inline float lanes_sum(float value) {
  for (int distance = wave_size() / 2; distance > 0; distance /= 2) {
    value += shuffle_xor(all_lanes(), value, distance, wave_size());
  }
  return value;
}

// Removes the k highest of the wave's ranks, of which each lane has `count`. Lane i < k gets the id
// of the i-th highest, with PLUMB_ROUTER_ORDER_ANY of the i-th lowest of these k. `Params`: those
// of an op that chooses experts.
template <class Params>
PLUMB_DEVICE int pick_best(const Params& p, std::uint64_t* ranks, int count) {
  const int k = static_cast<int>(p.topk);
  int mine = 0;
  for (int place = 0; place < k; ++place) {
    std::uint64_t best = 0;
    for (int i = 0; i < count; ++i) best = ranks[i] > best ? ranks[i] : best;
    best = wave_max(best);
    for (int i = 0; i < count; ++i) {
      if (ranks[i] == best) ranks[i] = 0;
    }
    const int lane = p.order == PLUMB_ROUTER_ORDER_DESCENDING ? place : k - 1 - place;
    if (lane_index() == lane) mine = id_of(p.ties, best);
  }
  return mine;
}

// ln(1 + e) for e in [0, 1], within a few ulp: the series of 2 atanh(e / (2 + e)).
PLUMB_DEVICE inline float log1p_of_small(float e) {
  const float z = e / (2.0F + e), square = z * z;
  float series = 0.0F;
  PLUMB_UNROLL
  for (int odd = 15; odd >= 3; odd -= 2)
    series = (series + 1.0F / static_cast<float>(odd)) * square;
  return 2.0F * z + 2.0F * z * series;
}

// ln(1 + e^x). `Params`: parameters of an op that scores with it.
template <class Params>
PLUMB_DEVICE float softplus_of(const Params& p, float x) {
  constexpr float kLog2E = 1.44269504F, kLn2 = 0.693147181F;
  if (p.softplus == PLUMB_SOFTPLUS_THRESHOLD_20 && x > 20.0F) return x;
  const float e = exp2_approx(x * kLog2E);
  if (p.softplus_small == PLUMB_SOFTPLUS_LOG1P && x < 0.0F) return log1p_of_small(e);
  return log2_approx(1.0F + e) * kLn2;
}

// sqrt(ln(1 + e^x))
template <class Params>
PLUMB_DEVICE float sqrt_softplus(const Params& p, float x) {
  if (x != x) return p.nan_score == PLUMB_NAN_SCORE_ZERO ? 0.0F : x;
  const float softplus = softplus_of(p, x);
  if (softplus == 0.0F || softplus == INFINITY) return softplus;
  return softplus * rsqrt_approx(softplus);
}

// Divisor of the weights. p.zero_sum chooses what happens if the sum of a row's scores is 0: ONE
// divides by 1 and gives weights of 0; EPSILON adds 1e-20 to every sum and gives 0; NAN divides by
// 0 and gives NaN.
template <class Params>
PLUMB_DEVICE float divisor_of(const Params& p, float sum) {
  if (p.zero_sum == PLUMB_ZERO_SUM_EPSILON) return sum + 1e-20F;
  return p.zero_sum == PLUMB_ZERO_SUM_NAN || sum > 0.0F ? sum : 1.0F;
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
