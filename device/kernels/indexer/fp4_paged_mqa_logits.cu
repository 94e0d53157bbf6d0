// SPDX-License-Identifier: Apache-2.0
//
// fp4_paged_mqa_logits: each query row scores the tokens of its request in a paged cache of MXFP4
// keys. Block b takes row b / tiles and the columns of tile b % tiles, one per thread
// (mqa_logits.h). Legal launch: grid_x = rows * tiles, block of kLogitsBlock, logits_shared_bytes()
// of dynamic shared memory.
#include <plumb/ops/indexer.h>

#include "device/kernels/fp4.h"
#include "device/kernels/indexer/mqa_logits.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_fp4_paged_mqa_logits_params;

// The kMxGroup dims under one scale.
PLUMB_DEVICE void decode_group(const std::uint8_t* codes, std::uint8_t scale, float* values) {
  const float factor = decode_ue8m0(scale);
  for (int i = 0; i < kMxGroup / 2; ++i) {
    values[2 * i] = factor * decode_e2m1(codes[i] & 15U);
    values[2 * i + 1] = factor * decode_e2m1(codes[i] >> 4U);
  }
}

PLUMB_DEVICE std::int64_t length_of(const Params& p, std::int64_t row) {
  const std::int64_t query = row % p.next_n;
  const std::int32_t* lengths = p.context_lens + row / p.next_n * p.context_lens_row_stride;
  if (p.context_lens_dims == 2) return lengths[query];
  return lengths[0] - p.next_n + query + 1;
}

PLUMB_DEVICE LogitsQuery query_of(const Params& p, std::int64_t row) {
  const int heads = static_cast<int>(p.heads), dim = static_cast<int>(p.dim);
  float* values = dynamic_shared<float>();
  float* weights = values + heads * dim;
  const std::uint8_t* codes = p.q + row * p.heads * (p.dim / 2);
  const std::uint8_t* scales = p.q_scales + row * p.heads * (p.dim / kMxGroup);
  for (int g = thread_index(); g < heads * dim / kMxGroup; g += block_size()) {
    decode_group(codes + g * (kMxGroup / 2), scales[g], values + g * kMxGroup);
  }
  for (int head = thread_index(); head < heads; head += block_size()) {
    weights[head] = p.weights[row * p.heads + head];
  }
  block_sync();
  return {values, weights, heads, dim};
}

// The score of a token of the row's request.
PLUMB_DEVICE float score_token(const Params& p, std::int64_t row, const LogitsQuery& query,
                               std::int64_t column) {
  const std::int64_t token = column % p.page;
  const std::int32_t number =
      p.block_table[row / p.next_n * p.block_table_row_stride + column / p.page];
  const std::uint8_t* block = p.cache + number * p.block_stride_bytes;
  const std::uint8_t* codes = block + token * (p.dim / 2);
  const std::uint8_t* scales = block + p.page * (p.dim / 2) + token * (p.dim / kMxGroup);
  float key[kMostLogitsDim];
  for (int g = 0; g < query.dim / kMxGroup; ++g) {
    decode_group(codes + g * (kMxGroup / 2), scales[g], key + g * kMxGroup);
  }
  return score_key(query, key);
}

PLUMB_KERNEL void fp4_paged_mqa_logits_kernel(Params p, std::int64_t tiles) {
  const std::int64_t row = block_index_x() / tiles;
  const std::int64_t first = block_index_x() % tiles * kLogitsBlock;
  const std::int64_t length = length_of(p, row);
  if (first >= length && !p.clean_logits) return;

  const LogitsQuery query = query_of(p, row);
  const std::int64_t column = first + thread_index();
  if (column >= p.max_context_len) return;
  float* logit = p.logits + row * p.logits_row_stride + column;
  if (column < length) {
    *logit = score_token(p, row, query, column);
  } else if (p.clean_logits) {
    *logit = minus_infinity();
  }
}

bool is_legal(const Params& p) {
  if (p.requests < 0 || p.max_context_len < 0 || p.next_n < 1 || p.heads < 1) return false;
  if (p.dim < kMxGroup || p.dim % kMxGroup != 0 || p.page < 1 || p.num_blocks < 0) return false;
  if (p.block_stride_bytes < p.page * (p.dim / 2 + p.dim / kMxGroup)) return false;
  if (p.block_stride_bytes % 4 != 0 || p.logits_row_stride < p.max_context_len) return false;
  return p.context_lens_dims == 1 || (p.context_lens_dims == 2 && !p.clean_logits);
}

plumb_status launch_fp4_paged_mqa_logits(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.requests == 0 || p.max_context_len == 0) return PLUMB_OK;
  if (!p.q || !p.q_scales || !p.cache || !p.weights || !p.context_lens || !p.block_table ||
      !p.logits) {
    return PLUMB_INVALID_ARGUMENT;
  }
  const std::int64_t tiles = (p.max_context_len + kLogitsBlock - 1) / kLogitsBlock;
  const std::int64_t blocks = p.requests * p.next_n * tiles;
  if (!can_score(p.heads, p.dim, blocks, stream_properties(p.stream))) return PLUMB_UNSUPPORTED;
  const LaunchShape shape{blocks, 1, kLogitsBlock, logits_shared_bytes(p.heads, p.dim)};
  return PLUMB_LAUNCH(fp4_paged_mqa_logits_kernel, shape, p.stream, p, tiles);
}

}  // namespace

OpEntry fp4_paged_mqa_logits() {
  return {"fp4_paged_mqa_logits", launch_fp4_paged_mqa_logits, kMqaLogitsNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
