// SPDX-License-Identifier: Apache-2.0
//
// States of the online compressor: rows of largest scores, sums of weights and means of kv. A
// thread has one channel of a state in registers and appends one token after the other.
#pragma once

#include <plumb/ops/compressor.h>

#include <cmath>

#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr std::int64_t kGroupPositions = 128;

struct OnlineChannel {
  float largest, sum, mean;
};

// exp2_approx within 2 ulp on every back end. `chains`: one token after the other.
constexpr plumb_numerics kOnlineNumerics = {.product = PLUMB_F32,
                                            .accumulator = PLUMB_F32,
                                            .chains = 1,
                                            .probability = PLUMB_F32,
                                            .function_ulp = 2,
                                            .deterministic = 1,
                                            .stores_partials = 0};

PLUMB_DEVICE inline OnlineChannel fresh_channel() { return {-INFINITY, 0, 0}; }

PLUMB_DEVICE inline OnlineChannel load_channel(const plumb_online_states& states, std::int64_t row,
                                               std::int64_t head_dim, std::int64_t d) {
  const float* const state = states.data + row * states.row_stride;
  return {state[d], state[head_dim + d], state[2 * head_dim + d]};
}

PLUMB_DEVICE inline void store_channel(const OnlineChannel& channel,
                                       const plumb_online_states& states, std::int64_t row,
                                       std::int64_t head_dim, std::int64_t d) {
  float* const state = states.data + row * states.row_stride;
  state[d] = channel.largest;
  state[head_dim + d] = channel.sum;
  state[2 * head_dim + d] = channel.mean;
}

PLUMB_DEVICE inline float exp_of_difference(float a, float b) {
  constexpr float kLog2E = 1.44269504F;
  return exp2_approx((a - b) * kLog2E);
}

// The state with one more position. The first position of a group replaces the state.
PLUMB_DEVICE inline OnlineChannel appended(const OnlineChannel& state, std::int64_t phase,
                                           float score, float kv) {
  if (phase == 0) return {score, 1, kv};
  const float largest = score > state.largest ? score : state.largest;
  const float before = state.sum * exp_of_difference(state.largest, largest);
  const float weight = exp_of_difference(score, largest);
  const float sum = before + weight;
  return {largest, sum, (state.mean * before + kv * weight) / sum};
}

template <class P>
PLUMB_DEVICE OnlineChannel appended_token(const P& p, const OnlineChannel& state,
                                          std::int64_t token, std::int64_t phase, std::int64_t d) {
  const float score = p.score[token * p.score_row_stride + d] + p.ape[phase * p.head_dim + d];
  return appended(state, phase, score, p.kv[token * p.kv_row_stride + d]);
}

// Members that all ops on online states have.
template <class P>
bool has_legal_states(const P& p) {
  return p.requests >= 0 && p.head_dim >= 1 && p.states.row_stride >= 3 * p.head_dim &&
         p.states.rows >= 0;
}

// Members of the ops on banks of states.
template <class P>
bool has_legal_banks(const P& p) {
  constexpr std::int64_t kMostVerified = 8;
  return has_legal_states(p) && p.verify_tokens >= 1 && p.verify_tokens <= kMostVerified &&
         p.bank_rows >= 0 && p.states.rows / (p.verify_tokens + 1) >= p.bank_rows;
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
