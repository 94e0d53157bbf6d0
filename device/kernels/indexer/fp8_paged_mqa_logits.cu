// SPDX-License-Identifier: Apache-2.0
//
// fp8_paged_mqa_logits: each query row scores the tokens of its request, which lie in a paged
// cache. Without a schedule block b takes row b / tiles and the columns of tile b % tiles, one per
// thread (mqa_logits.h). With one, block b is slot b: it takes the segments of each atom from its
// entry up to the next one, in tiles of as many columns. Legal launch: grid_x = rows * tiles, or
// slots; block of kLogitsBlock, logits_shared_bytes() of dynamic shared memory.
#include <plumb/ops/cache.h>
#include <plumb/ops/indexer.h>

#include "device/kernels/indexer/mqa_logits.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_fp8_paged_mqa_logits_params;

PLUMB_DEVICE std::int64_t length_of(const Params& p, std::int64_t row) {
  const std::int64_t query = row % p.next_n;
  const std::int32_t* lengths = p.context_lens + row / p.next_n * p.context_lens_row_stride;
  if (p.context_lens_dims == 2) return lengths[query];
  return lengths[0] - p.next_n + query + 1;
}

PLUMB_DEVICE LogitsQuery query_of(const Params& p, std::int64_t row) {
  const int heads = static_cast<int>(p.heads), dim = static_cast<int>(p.dim);
  return load_query(p.q + row * p.heads * p.dim, p.weights + row * p.heads, heads, dim,
                    p.q_dialect);
}

PLUMB_DEVICE float* logit_of(const Params& p, std::int64_t row, std::int64_t column) {
  return p.logits + row * p.logits_row_stride + column;
}

// A token of the row's request.
PLUMB_DEVICE void score_token(const Params& p, std::int64_t row, const LogitsQuery& query,
                              std::int64_t column) {
  const int dim = static_cast<int>(p.dim);
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
  float* logit = logit_of(p, row, column);
  if (p.scaled == PLUMB_SCALED_OPERAND) {
    *logit = score_scaled_key(query, scales[token], values);
    return;
  }
  *logit = scales[token] * score_key(query, values);
}

PLUMB_KERNEL void fp8_paged_mqa_logits_kernel(Params p, std::int64_t tiles) {
  const std::int64_t row = block_index_x() / tiles;
  const std::int64_t first = block_index_x() % tiles * kLogitsBlock;
  const std::int64_t length = length_of(p, row);
  if (first >= length && !p.clean_logits) return;

  const LogitsQuery query = query_of(p, row);
  const std::int64_t column = first + thread_index();
  if (column >= p.max_context_len) return;
  if (column < length) {
    score_token(p, row, query, column);
  } else if (p.clean_logits) {
    *logit_of(p, row, column) = minus_infinity();
  }
}

// Segments of each atom of a request, which its last query row needs.
PLUMB_DEVICE std::int64_t segments_of(const Params& p, std::int64_t request) {
  return (length_of(p, request * p.next_n + p.next_n - 1) + p.split_kv - 1) / p.split_kv;
}

// Columns of a segment, as far as each row of the atom has tokens there.
PLUMB_DEVICE void score_segment(const Params& p, std::int64_t atom, std::int64_t segment) {
  const std::int64_t rows = p.next_n / p.atoms, first_row = atom * rows;
  const std::int64_t begin = segment * p.split_kv, most = begin + p.split_kv;
  for (std::int64_t row = first_row; row < first_row + rows; ++row) {
    const std::int64_t length = length_of(p, row), end = length < most ? length : most;
    if (begin >= end) continue;
    const LogitsQuery query = query_of(p, row);
    for (std::int64_t column = begin + thread_index(); column < end; column += kLogitsBlock) {
      score_token(p, row, query, column);
    }
    block_sync();  // the next row's query goes where this one stands
  }
}

PLUMB_KERNEL void scheduled_mqa_logits_kernel(Params p) {
  const std::int32_t* entry = p.schedule + block_index_x() * p.schedule_row_stride;
  const std::int32_t* next = entry + p.schedule_row_stride;
  const std::int64_t atoms = p.requests * p.atoms, last = next[0] < atoms ? next[0] : atoms - 1;
  std::int64_t segment = entry[1];
  for (std::int64_t atom = entry[0]; atom <= last; ++atom, segment = 0) {
    const std::int64_t own = segments_of(p, atom / p.atoms);
    const std::int64_t end = atom == next[0] && next[1] < own ? next[1] : own;
    for (; segment < end; ++segment) score_segment(p, atom, segment);
  }
}

bool is_legal(const plumb_paged_cache& cache, std::int64_t dim, bool shuffled) {
  if (cache.page < 1 || cache.num_blocks < 0 || !is_fp8(cache.dialect)) return false;
  if (cache.block_stride_bytes < cache.page * (dim + 4) || cache.block_stride_bytes % 4 != 0) {
    return false;
  }
  const bool tiles = cache.page % kLogitsTile == 0 && dim % kLogitsTile == 0;
  return !shuffled || cache.page == 1 || tiles;
}

bool has_legal_schedule(const Params& p) {
  if (p.schedule == nullptr) return p.slots == 0;
  return p.slots >= 1 && p.schedule_row_stride >= 2 && p.split_kv >= 1 && p.atoms >= 1 &&
         p.next_n % p.atoms == 0 && !p.clean_logits;
}

bool is_legal(const Params& p) {
  if (p.requests < 0 || p.max_context_len < 0 || p.next_n < 1 || p.heads < 1 || p.dim < 1) {
    return false;
  }
  if (p.logits_row_stride < p.max_context_len || !is_fp8(p.q_dialect)) return false;
  if (p.context_lens_dims != 1 && (p.context_lens_dims != 2 || p.clean_logits)) return false;
  return is_legal(p.cache, p.dim, p.shuffled != 0) && has_legal_schedule(p);
}

plumb_status launch_fp8_paged_mqa_logits(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.requests == 0 || p.max_context_len == 0) return PLUMB_OK;
  if (!p.q || !p.cache.data || !p.weights || !p.context_lens || !p.block_table || !p.logits) {
    return PLUMB_INVALID_ARGUMENT;
  }
  const std::int64_t tiles = (p.max_context_len + kLogitsBlock - 1) / kLogitsBlock;
  const std::int64_t blocks = p.schedule != nullptr ? p.slots : p.requests * p.next_n * tiles;
  if (!can_score(p.heads, p.dim, blocks, stream_properties(p.stream))) return PLUMB_UNSUPPORTED;
  const LaunchShape shape{blocks, 1, kLogitsBlock, logits_shared_bytes(p.heads, p.dim)};
  if (p.schedule != nullptr) {
    return PLUMB_LAUNCH(scheduled_mqa_logits_kernel, shape, p.stream, p);
  }
  return PLUMB_LAUNCH(fp8_paged_mqa_logits_kernel, shape, p.stream, p, tiles);
}

}  // namespace

OpEntry fp8_paged_mqa_logits() {
  return {"fp8_paged_mqa_logits", launch_fp8_paged_mqa_logits, kMqaLogitsNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
