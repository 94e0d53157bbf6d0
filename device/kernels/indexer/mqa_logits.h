// SPDX-License-Identifier: Apache-2.0
//
// The score of the lightning indexer, for both logits kernels. A block takes one query row and
// kLogitsBlock columns. The row's heads are decoded into shared memory. Thread t decodes the key of
// column t and adds up the heads by itself.
#pragma once

#include <cstdint>

#include "device/kernels/fp8.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr int kLogitsBlock = 128;
constexpr int kMostLogitsDim = 128;
constexpr int kLogitsTile = 16;  // dims of a key that are adjacent in every layout
constexpr int kDotChains = 8, kHeadChains = 8;

// fp32 throughout. The sum over heads has kHeadChains chains.
constexpr plumb_numerics kMqaLogitsNumerics = {.product = PLUMB_F32,
                                               .accumulator = PLUMB_F32,
                                               .chains = kHeadChains,
                                               .probability = PLUMB_F32,
                                               .function_ulp = 2.0f,
                                               .deterministic = 1};

// One row of queries in shared memory: heads * dim values, then a weight per head.
struct LogitsQuery {
  const float* values;
  const float* weights;
  int heads, dim;
};

inline std::size_t logits_shared_bytes(std::int64_t heads, std::int64_t dim) {
  return static_cast<std::size_t>(heads * (dim + 1)) * sizeof(float);
}

// All threads of the block must call it.
PLUMB_DEVICE inline LogitsQuery load_query(const std::uint8_t* q, const float* weights, int heads,
                                           int dim, plumb_format dialect) {
  float* values = dynamic_shared<float>();
  float* own_weights = values + heads * dim;
  for (int i = thread_index(); i < heads * dim; i += block_size()) {
    values[i] = decode_e4m3(q[i], dialect);
  }
  for (int head = thread_index(); head < heads; head += block_size()) {
    own_weights[head] = weights[head];
  }
  block_sync();
  return {values, own_weights, heads, dim};
}

// Decodes a key whose tiles of 16 dims are tile_stride bytes apart.
PLUMB_DEVICE inline void decode_key(const std::uint8_t* codes, int tile_stride, int dim,
                                    plumb_format dialect, float* key) {
  for (int d = 0; d < dim; ++d) {
    key[d] = decode_e4m3(codes[d / kLogitsTile * tile_stride + d % kLogitsTile], dialect);
  }
}

PLUMB_DEVICE inline float sum_of_eight(const float* sums) {
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

PLUMB_DEVICE inline float dot(const float* query, const float* key, int dim) {
  float sums[kDotChains] = {};
  for (int d = 0; d < dim; d += kDotChains) {
    for (int j = 0; j < kDotChains; ++j) sums[j] += query[d + j] * key[d + j];
  }
  return sum_of_eight(sums);
}

// sum_h weights[h] * max(0, q[h] . key). A NaN score stays NaN.
PLUMB_DEVICE inline float score_key(const LogitsQuery& query, const float* key) {
  float sums[kHeadChains] = {};
  for (int head = 0; head < query.heads; ++head) {
    const float score = dot(query.values + head * query.dim, key, query.dim);
    sums[head % kHeadChains] += query.weights[head] * (score < 0 ? 0 : score);
  }
  return sum_of_eight(sums);
}

// The score of key * scale, which overwrites `key`.
PLUMB_DEVICE inline float score_scaled_key(const LogitsQuery& query, float scale, float* key) {
  for (int d = 0; d < query.dim; ++d) key[d] *= scale;
  return score_key(query, key);
}

PLUMB_DEVICE inline float minus_infinity() { return bits_float(0xff800000U); }

inline bool is_fp8(plumb_format format) {
  return format == PLUMB_E4M3FN || format == PLUMB_E4M3FNUZ;
}

// Whether these kernels support a legal call.
inline bool can_score(std::int64_t heads, std::int64_t dim, std::int64_t blocks,
                      const Properties& device) {
  return dim <= kMostLogitsDim && dim % kLogitsTile == 0 && blocks <= device.max_grid_x &&
         logits_shared_bytes(heads, dim) <= device.shared_bytes_per_block;
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
