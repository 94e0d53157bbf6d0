// SPDX-License-Identifier: Apache-2.0
//
// The blocks of one row, as the kernels of the two-level top-k see them. Blocks are counted from
// the start of the row's window.
#pragma once

#include <plumb/ops/top_k.h>

#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

constexpr plumb_numerics kCandidateNumerics = {.product = PLUMB_F32,
                                               .accumulator = PLUMB_F32,
                                               .chains = 1,
                                               .probability = PLUMB_F32,
                                               .function_ulp = 0,
                                               .deterministic = 1,
                                               .stores_partials = 0};

struct CandidateWindow {
  std::int64_t start, stop;     // columns of the row that blocks have
  std::int64_t blocks, newest;  // blocks with a column; newest: -1 if the window is empty
};

template <class Params>
PLUMB_DEVICE CandidateWindow candidate_window(const Params& p, std::int64_t row) {
  const std::int64_t start = p.row_starts[row / p.row_repeat];
  const std::int64_t end = p.row_ends[row / p.row_repeat];
  const std::int64_t stop = end < p.columns ? end : p.columns;
  return {start, stop, stop > start ? (stop - start + p.block_size - 1) / p.block_size : 0,
          end > start ? (end - start - 1) / p.block_size : -1};
}

template <class Params>
bool is_legal_candidate_call(const Params& p) {
  if (p.rows < 0 || p.columns < 0 || p.row_repeat < 1 || p.rows % p.row_repeat != 0) return false;
  if (p.topk_blocks < 1 || p.block_size < 1 || p.logits_row_stride < p.columns) return false;
  if (p.blocks_row_stride < p.topk_blocks) return false;
  if (p.logits_format != PLUMB_F32 && p.logits_format != PLUMB_BF16) return false;
  return p.rows == 0 || (p.logits && p.row_starts && p.row_ends && p.blocks);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
