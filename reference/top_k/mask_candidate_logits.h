// SPDX-License-Identifier: Apache-2.0
//
// mask_candidate_logits: the second level of V4.1's two-level top-k (docs/operations/top_k.md,
// 4.5). Only columns of candidate blocks stay; top-k per row then selects from them.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/top_k/candidate_blocks.h"

namespace plumb::reference {

struct CandidateMask {
  BlockedLogits rows;
  const std::int32_t* blocks = nullptr;  // [rows, topk_blocks]; negative: none
  std::int64_t topk_blocks = 0, blocks_row_stride = 0;
  bool keep_last = false;  // a candidate at or behind the columns keeps the last column
};

// True for each column of the row that stays.
inline std::vector<bool> kept_columns(const CandidateMask& input, std::int64_t row) {
  const BlockedWindow window = input.rows.window(row);
  std::vector<bool> kept(static_cast<std::size_t>(input.rows.columns));
  for (std::int64_t j = 0; j < input.topk_blocks; ++j) {
    const std::int64_t block = input.blocks[row * input.blocks_row_stride + j];
    if (block < 0) continue;
    const std::int64_t first = window.start + block * window.size;
    for (std::int64_t c = first; c < first + window.size && c < window.stop; ++c) kept[c] = true;
    const bool reaches = window.stop == input.rows.columns && window.start < window.stop;
    if (input.keep_last && reaches && first >= input.rows.columns) kept.back() = true;
  }
  return kept;
}

}  // namespace plumb::reference
