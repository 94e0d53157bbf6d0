// SPDX-License-Identifier: Apache-2.0
//
// combine_topk_swa_indices_ragged: the rows of the prefill workspace that each token of a chunk
// attends to: compressed states first, then its window. One block writes indptr and lens. Then
// block t writes the entries of token t. Legal launch: one block of whole waves; grid_x = tokens,
// any block.
#include <plumb/ops/metadata.h>

#include "device/kernels/block_table.h"
#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_combine_topk_swa_indices_ragged_params;

// What a token attends to: `compressed` states, and `window` positions of which `position` is the
// last. A token behind the last request attends to nothing.
struct Attended {
  std::int64_t request = -1, position = -1, compressed = 0, window = 0;
};

PLUMB_DEVICE Attended attended_by(const Params& p, std::int64_t token) {
  Attended a;
  a.request = request_of(p.query_start_loc, p.requests, token);
  if (a.request < 0) return a;
  a.position = position_of(p.query_start_loc, p.seq_lens, a.request, token);
  const std::int64_t states = (a.position + 1) / p.ratio;
  a.compressed = states < p.top_k ? states : p.top_k;
  a.window = a.position + 1 < p.window ? a.position + 1 : p.window;
  return a;
}

PLUMB_KERNEL void combine_lens_kernel(Params p) {
  const auto length_of = [&p](std::int64_t token) {
    const Attended a = attended_by(p, token);
    const auto length = static_cast<std::int32_t>(a.compressed + a.window);
    p.lens[token] = length;
    return length;
  };
  write_indptr(p.tokens, length_of, p.indptr);
}

PLUMB_DEVICE void write_no_index(std::int32_t* to, std::int64_t count) {
  for (std::int64_t j = thread_index(); j < count; j += block_size()) to[j] = kNoIndex;
}

// Writes -1 behind the last entry. The buffer has `places` per token; block t clears the t-th
// share.
PLUMB_DEVICE void write_tail(const Params& p, std::int64_t token) {
  const std::int64_t places = p.top_k + p.window;
  const std::int64_t end = p.indptr[p.tokens], all = p.tokens * places;
  const std::int64_t first = token * places < end ? end : token * places;
  const std::int64_t last = (token + 1) * places < all ? (token + 1) * places : all;
  write_no_index(p.flat + first, last - first);
}

PLUMB_KERNEL void combine_indices_kernel(Params p) {
  const std::int64_t token = block_index_x();
  if (p.tail == PLUMB_NO_VALUE_MINUS_ONE) write_tail(p, token);
  const Attended a = attended_by(p, token);
  if (a.request < 0) return;
  const std::int32_t* topk = p.topk_indices + token * p.topk_indices_row_stride;
  std::int32_t* flat = p.flat + p.indptr[token];
  const std::int64_t region = a.request * p.rows_per_request;
  const bool kept = p.minus_one == PLUMB_MINUS_ONE_KEPT;
  const std::int64_t with_column = a.compressed < p.topk_width ? a.compressed : p.topk_width;
  for (std::int64_t j = thread_index(); j < with_column; j += block_size()) {
    flat[j] = kept && topk[j] < 0 ? kNoIndex : static_cast<std::int32_t>(region + topk[j]);
  }
  if (p.missing == PLUMB_NO_VALUE_MINUS_ONE) {
    write_no_index(flat + with_column, a.compressed - with_column);
  }
  const std::int64_t first_gathered = p.seq_lens[a.request] - p.gather_lens[a.request];
  const std::int64_t first = a.position - a.window + 1 - first_gathered;
  for (std::int64_t j = thread_index(); j < a.window; j += block_size()) {
    flat[a.compressed + j] = static_cast<std::int32_t>(region + p.compressed_rows + first + j);
  }
}

bool is_legal(const Params& p) {
  if (p.tokens < 0 || p.requests < 0 || p.ratio < 1 || p.top_k < 0 || p.window < 0) return false;
  if (p.topk_width < 0 || !p.indptr) return false;
  if (p.tokens == 0) return true;
  if (!p.query_start_loc || !p.lens || !p.flat) return false;
  if (p.top_k > 0 && p.topk_width > 0 && !p.topk_indices) return false;
  return p.requests == 0 || (p.seq_lens && p.gather_lens);
}

plumb_status launch_combine_topk_swa_indices_ragged(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  const plumb_status counted =
      PLUMB_LAUNCH(combine_lens_kernel, indptr_shape(p.tokens, p.stream), p.stream, p);
  if (counted != PLUMB_OK || p.tokens == 0) return counted;
  const std::int64_t widest = p.top_k > p.window ? p.top_k : p.window;
  return PLUMB_LAUNCH(combine_indices_kernel, row_shape(p.tokens, widest, p.stream), p.stream, p);
}

}  // namespace

OpEntry combine_topk_swa_indices_ragged() {
  return {"combine_topk_swa_indices_ragged", launch_combine_topk_swa_indices_ragged,
          kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
