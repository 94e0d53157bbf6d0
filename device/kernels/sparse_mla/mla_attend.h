// SPDX-License-Identifier: Apache-2.0
//
// Softmax attention of one tile of 16 heads of one query row, 16 candidates at a time, by a block
// of 128 threads:
//
//   stage    thread t copies every 8th dimension of q for head t / 8, once. The op stages
//            candidates: thread t takes groups of 64 dimensions of candidate t / 8
//   score    thread t: head t / 8, candidates t % 8 and t % 8 + 8, each a sequential sum over d
//   weigh    thread t < 16: head t; online softmax in base 2
//   gather   thread t: dimensions 4t .. 4t + 3 of every head's value, in registers
#pragma once

#include <cmath>
#include <cstdint>

#include "device/kernels/bf16.h"
#include "device/kernels/sparse_mla/mla_cache.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr float kLog2E = 1.44269504F, kLn2 = 0.693147181F;

constexpr int kThreads = 128, kHeadTile = 16, kTokenTile = 16;
constexpr int kThreadDims = kValueDim / kThreads;
constexpr int kScoreThreads = kThreads / kHeadTile;   // per head
constexpr int kStageThreads = kThreads / kTokenTile;  // per candidate
constexpr int kMostKeyDims = 576;
// One word of padding, so that adjacent candidates start in different memory banks.
constexpr int kTokenStride = kMostKeyDims + 2;
static_assert(kTokenTile == 2 * kScoreThreads && kScoreThreads == kStageThreads);

// Initial maximum: so low that its weight vanishes, but finite, so that no difference is infinity -
// infinity.
constexpr float kLowest = -1e30F;

// One tile of heads of one query of one request, and the shared memory of the block that works on
// it.
struct MlaWork {
  int request, query, first_head, heads;
  int key_dims;           // 512 or 576; the first 512 are the value
  std::uint16_t* q;       // [kHeadTile, kMostKeyDims]
  std::uint16_t* tokens;  // [kTokenTile, kTokenStride]
  std::int32_t* slots;    // [kTokenTile], -1: no candidate
  float* weights;         // [kHeadTile, kTokenTile]: scores, then p
  float* factors;         // [kHeadTile]: factors for the accumulators
};

// State of one head's online softmax. Without candidates, sum is 0.
struct Softmax {
  float largest = kLowest, sum = 0;
};
PLUMB_DEVICE inline float lse_in_base_2(const Softmax& softmax) {
  return log2_approx(softmax.sum) + softmax.largest;
}

PLUMB_DEVICE inline int heads_of_tile(std::int64_t heads, int first_head) {
  const std::int64_t left = heads - first_head;
  return left < kHeadTile ? static_cast<int>(left) : kHeadTile;
}

// `q`: head 0 of the query row.
PLUMB_DEVICE inline void stage_q(const MlaWork& work, const std::uint16_t* q,
                                 std::int64_t head_stride) {
  const int head = thread_index() / kStageThreads;
  if (head >= work.heads) return;
  const std::uint16_t* from = q + (work.first_head + head) * head_stride;
  std::uint16_t* to = work.q + head * kMostKeyDims;
  for (int d = thread_index() % kStageThreads; d < work.key_dims; d += kStageThreads) {
    to[d] = from[d];
  }
}

PLUMB_DEVICE inline void zero_group(std::uint16_t* to) {
  for (int d = 0; d < kGroup; ++d) to[d] = 0;
}

PLUMB_DEVICE inline void score_tokens(const MlaWork& work, float scale) {
  const int head = thread_index() / kScoreThreads, token = thread_index() % kScoreThreads;
  if (head >= work.heads) return;
  const std::uint16_t* q = work.q + head * kMostKeyDims;
  const std::uint16_t* near = work.tokens + token * kTokenStride;
  const std::uint16_t* far = near + kScoreThreads * kTokenStride;
  float near_sum = 0, far_sum = 0;
  for (int d = 0; d < work.key_dims; ++d) {
    const float value = load_bf16(q[d]);
    near_sum += value * load_bf16(near[d]);
    far_sum += value * load_bf16(far[d]);
  }
  float* scores = work.weights + head * kTokenTile + token;
  scores[0] = work.slots[token] < 0 ? -INFINITY : near_sum * scale;
  scores[kScoreThreads] = work.slots[token + kScoreThreads] < 0 ? -INFINITY : far_sum * scale;
}

// Turns a head's scores into p. The sum adds p unrounded; the product with V uses p in bf16.
PLUMB_DEVICE inline void weigh_tokens(float* weights, float& factor, Softmax& softmax) {
  float largest = softmax.largest;
  for (int i = 0; i < kTokenTile; ++i) largest = weights[i] > largest ? weights[i] : largest;
  float sum = 0;
  for (int i = 0; i < kTokenTile; ++i) {
    const float p = exp2_approx(weights[i] - largest);
    sum += p;
    weights[i] = load_bf16(store_bf16(p));
  }
  factor = exp2_approx(softmax.largest - largest);
  softmax.sum = softmax.sum * factor + sum;
  softmax.largest = largest;
}

PLUMB_DEVICE inline void gather_tokens(const MlaWork& work, float (&sums)[kHeadTile][kThreadDims]) {
  for (int head = 0; head < kHeadTile; ++head) {
    if (head >= work.heads) break;
    for (int d = 0; d < kThreadDims; ++d) sums[head][d] *= work.factors[head];
  }
  for (int token = 0; token < kTokenTile; ++token) {
    const std::uint16_t* from = work.tokens + token * kTokenStride + thread_index() * kThreadDims;
    float v[kThreadDims];
    for (int d = 0; d < kThreadDims; ++d) v[d] = load_bf16(from[d]);
    for (int head = 0; head < kHeadTile; ++head) {
      if (head >= work.heads) break;
      const float p = work.weights[head * kTokenTile + token];
      for (int d = 0; d < kThreadDims; ++d) sums[head][d] += p * v[d];
    }
  }
}

// Attends to the staged candidates. `softmax` belongs to head thread_index(). `scale` turns q.k
// into exponents of 2.
PLUMB_DEVICE inline void attend_tile(const MlaWork& work, float scale, Softmax& softmax,
                                     float (&sums)[kHeadTile][kThreadDims]) {
  const int thread = thread_index();
  block_sync();
  score_tokens(work, scale);
  block_sync();
  if (thread < work.heads) {
    weigh_tokens(work.weights + thread * kTokenTile, work.factors[thread], softmax);
  }
  block_sync();
  gather_tokens(work, sums);
  block_sync();
}

// The sink's term in a sum of weights relative to 2^largest. 0 if attn_sink is null.
PLUMB_DEVICE inline float sink_weight(const float* attn_sink, int head, float largest) {
  if (attn_sink == nullptr) return 0;
  return exp2_approx(attn_sink[head] * kLog2E - largest);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
