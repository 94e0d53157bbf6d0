// SPDX-License-Identifier: Apache-2.0
//
// Rows of logits in blocks, as both ops of the two-level top-k see them (docs/operations/top_k.md,
// 4.4). Blocks are counted from the first column of a row's window, not from column 0.
#pragma once

#include <cstdint>

namespace plumb::reference {

// The blocks of one row. Block b has columns [start + b * size, start + (b + 1) * size) before
// `stop`.
struct BlockedWindow {
  std::int64_t start = 0, stop = 0;  // columns; stop <= start: no columns
  std::int64_t size = 1;             // columns of a block
  std::int64_t blocks = 0;           // with at least one column
  std::int64_t newest = -1;          // block of the last column before the end; -1: no columns
  std::int64_t grid = 0;             // blocks of as many columns as a row of logits has
};

struct BlockedLogits {
  const void* logits = nullptr;  // [rows, columns], bf16 or fp32
  bool bf16 = false;
  const std::int32_t* row_starts = nullptr;  // [rows / row_repeat]
  const std::int32_t* row_ends = nullptr;    // [rows / row_repeat], may be larger than columns
  std::int64_t rows = 0, columns = 0, row_stride = 0, row_repeat = 1, block_size = 1;

  float logit(std::int64_t row, std::int64_t column) const;
  // Throws std::invalid_argument if the start is negative.
  BlockedWindow window(std::int64_t row) const;
};

}  // namespace plumb::reference
