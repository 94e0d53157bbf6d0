// SPDX-License-Identifier: Apache-2.0
//
// combine_topk_swa_indices: the rows of the prefill workspace that each token of a chunk attends
// to, in a row of a table: compressed states, then the window, then -1. Block t takes token t, its
// threads the columns. Legal launch: grid_x = tokens, any block.
#include <plumb/ops/metadata.h>

#include "device/kernels/block_table.h"
#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_combine_topk_swa_indices_params;

// Number of compressed states that a token attends to, and the positions of its window.
struct AttendedColumns {
  std::int64_t states = 0, first = 0, end = 0;
};

PLUMB_DEVICE AttendedColumns attended_by(const Params& p, std::int64_t request,
                                         std::int64_t token) {
  const std::int64_t position = position_of(p.query_start_loc, p.seq_lens, request, token);
  AttendedColumns a;
  a.states = (position + 1) / p.ratio;
  if (a.states > p.top_k) a.states = p.top_k;
  a.first = position - (p.window - 1);
  a.end = position + 1;
  if (p.left_visible != nullptr) {
    const std::int64_t more = p.left_visible[token] - (p.window - 1);
    if (more > 0) a.first -= more;
    a.end += p.right_visible[token];
  }
  const std::int64_t begin = p.replay_start != nullptr ? p.replay_start[request] : 0;
  if (a.first < begin) a.first = begin;
  if (a.first < 0) a.first = 0;
  if (a.end > p.seq_lens[request]) a.end = p.seq_lens[request];
  return a;
}

// Workspace row of the token's j-th state.
PLUMB_DEVICE std::int32_t row_of_state(const Params& p, std::int64_t token, std::int64_t region,
                                       std::int64_t j) {
  if (j >= p.topk_width) {
    if (p.missing == PLUMB_MISSING_COLUMN_MINUS_ONE) return kNoIndex;
    j = 0;
  }
  const std::int32_t state = p.topk_indices[token * p.topk_indices_row_stride + j];
  if (state < 0 && p.minus_one == PLUMB_MINUS_ONE_KEPT) return kNoIndex;
  if (state >= p.compressed_rows && p.bounds == PLUMB_BOUNDS_CHECKED) return kNoIndex;
  return static_cast<std::int32_t>(region + state);
}

PLUMB_KERNEL void combine_dense_kernel(Params p) {
  const std::int64_t token = block_index_x();
  std::int32_t* row = p.combined_indices + token * p.combined_indices_row_stride;
  const std::int64_t request = request_of(p.query_start_loc, p.requests, token);
  std::int64_t entries = 0;
  if (request >= 0) {
    const AttendedColumns a = attended_by(p, request, token);
    const std::int64_t region = request * p.rows_per_request;
    const std::int64_t first_gathered = p.seq_lens[request] - p.gather_lens[request];
    const std::int64_t window_row = region + p.compressed_rows + a.first - first_gathered;
    entries = a.states + a.end - a.first;
    for (std::int64_t j = thread_index(); j < entries && j < p.width; j += block_size()) {
      row[j] = j < a.states ? row_of_state(p, token, region, j)
                            : static_cast<std::int32_t>(window_row + j - a.states);
    }
    if (thread_index() == 0) p.combined_lens[token] = static_cast<std::int32_t>(entries);
  }
  if (p.tail == PLUMB_ROW_TAIL_UNTOUCHED) return;
  for (std::int64_t j = entries + thread_index(); j < p.width; j += block_size()) row[j] = kNoIndex;
}

bool is_legal(const Params& p) {
  if (p.tokens < 0 || p.requests < 0 || p.ratio < 1 || p.top_k < 0 || p.window < 1) return false;
  if (p.topk_width < 0 || p.width < 0 || p.combined_indices_row_stride < p.width) return false;
  if ((p.left_visible == nullptr) != (p.right_visible == nullptr)) return false;
  if (p.tokens == 0) return true;
  if (!p.query_start_loc || !p.combined_indices || !p.combined_lens) return false;
  if (p.top_k > 0 && p.topk_width == 0 && p.missing == PLUMB_MISSING_COLUMN_0) return false;
  if (p.top_k > 0 && p.topk_width > 0 && !p.topk_indices) return false;
  return p.requests == 0 || (p.seq_lens && p.gather_lens);
}

plumb_status launch_combine_topk_swa_indices(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (!is_legal(p)) return PLUMB_INVALID_ARGUMENT;
  if (p.tokens == 0) return PLUMB_OK;
  if (p.tokens > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  return PLUMB_LAUNCH(combine_dense_kernel, row_shape(p.tokens, p.width, p.stream), p.stream, p);
}

}  // namespace

OpEntry combine_topk_swa_indices() {
  return {"combine_topk_swa_indices", launch_combine_topk_swa_indices, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
