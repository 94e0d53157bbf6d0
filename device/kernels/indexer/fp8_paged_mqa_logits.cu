// SPDX-License-Identifier: Apache-2.0
//
// fp8_paged_mqa_logits: each query row scores the tokens of its request, which lie in a paged
// cache. Block b takes row b / tiles and the columns of tile b % tiles, one per thread
// (mqa_logits.h). Legal launch: grid_x = rows * tiles, block of kLogitsBlock, logits_shared_bytes()
// of dynamic shared memory.
#include <plumb/ops/cache.h>
#include <plumb/ops/indexer.h>

#include "device/kernels/indexer/mqa_logits.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

PLUMB_DEVICE std::int64_t length_of(const plumb_fp8_paged_mqa_logits_params& p, std::int64_t row) {
  const std::int64_t query = row % p.next_n;
  const std::int32_t* lengths = p.context_lens + row / p.next_n * p.context_lens_row_stride;
  if (p.context_lens_dims == 2) return lengths[query];
  return lengths[0] - p.next_n + query + 1;
}

PLUMB_KERNEL void fp8_paged_mqa_logits_kernel(plumb_fp8_paged_mqa_logits_params p,
                                              std::int64_t tiles) {
  const std::int64_t row = block_index_x() / tiles;
  const std::int64_t first = block_index_x() % tiles * kLogitsBlock;
  const std::int64_t length = length_of(p, row);
  if (first >= length && !p.clean_logits) return;

  const int heads = static_cast<int>(p.heads), dim = static_cast<int>(p.dim);
  const LogitsQuery query =
      load_query(p.q + row * p.heads * p.dim, p.weights + row * p.heads, heads, dim, p.q_dialect);
  const std::int64_t column = first + thread_index();
  if (column >= p.max_context_len) return;
  float* logit = p.logits + row * p.logits_row_stride + column;
  if (column >= length) {
    if (p.clean_logits) *logit = minus_infinity();
    return;
  }
  const std::int64_t page = p.cache.page, token = column % page;
  const std::int32_t number =
      p.block_table[row / p.next_n * p.block_table_row_stride + column / page];
  const std::uint8_t* block = p.cache.data + number * p.cache.block_stride_bytes;
  const bool shuffled = p.shuffled && page > 1;
  const std::int64_t planar_at = token * p.dim;
  const std::int64_t shuffled_at =
      token / kLogitsTile * kLogitsTile * p.dim + token % kLogitsTile * kLogitsTile;
  float values[kMostLogitsDim];
  decode_key(block + (shuffled ? shuffled_at : planar_at),
             shuffled ? kLogitsTile * kLogitsTile : kLogitsTile, dim, p.cache.dialect, values);
  const auto* scales = reinterpret_cast<const float*>(block + page * p.dim);
  if (p.scaled == PLUMB_SCALED_OPERAND) {
    *logit = score_scaled_key(query, scales[token], values);
    return;
  }
  *logit = scales[token] * score_key(query, values);
}

bool is_legal(const plumb_paged_cache& cache, std::int64_t dim, bool shuffled) {
  if (cache.page < 1 || cache.num_blocks < 0 || !is_fp8(cache.dialect)) return false;
  if (cache.block_stride_bytes < cache.page * (dim + 4) || cache.block_stride_bytes % 4 != 0) {
    return false;
  }
  const bool tiles = cache.page % kLogitsTile == 0 && dim % kLogitsTile == 0;
  return !shuffled || cache.page == 1 || tiles;
}

bool is_legal(const plumb_fp8_paged_mqa_logits_params& p) {
  if (p.requests < 0 || p.max_context_len < 0 || p.next_n < 1 || p.heads < 1 || p.dim < 1) {
    return false;
  }
  if (p.logits_row_stride < p.max_context_len || !is_fp8(p.q_dialect)) return false;
  if (p.context_lens_dims != 1 && (p.context_lens_dims != 2 || p.clean_logits)) return false;
  return is_legal(p.cache, p.dim, p.shuffled != 0);
}

plumb_status launch_fp8_paged_mqa_logits(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_fp8_paged_mqa_logits_params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.requests == 0 || p.max_context_len == 0) return PLUMB_OK;
  if (!p.q || !p.cache.data || !p.weights || !p.context_lens || !p.block_table || !p.logits) {
    return PLUMB_INVALID_ARGUMENT;
  }
  const std::int64_t tiles = (p.max_context_len + kLogitsBlock - 1) / kLogitsBlock;
  const std::int64_t blocks = p.requests * p.next_n * tiles;
  if (!can_score(p.heads, p.dim, blocks, stream_properties(p.stream))) return PLUMB_UNSUPPORTED;
  const LaunchShape shape{blocks, 1, kLogitsBlock, logits_shared_bytes(p.heads, p.dim)};
  return PLUMB_LAUNCH(fp8_paged_mqa_logits_kernel, shape, p.stream, p, tiles);
}

}  // namespace

OpEntry fp8_paged_mqa_logits() {
  return {"fp8_paged_mqa_logits", launch_fp8_paged_mqa_logits, kMqaLogitsNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
