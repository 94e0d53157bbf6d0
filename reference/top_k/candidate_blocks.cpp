// SPDX-License-Identifier: Apache-2.0
#include "reference/top_k/candidate_blocks.h"

#include <algorithm>
#include <stdexcept>

#include "reference/formats/bfloat16.h"

namespace plumb::reference {

float BlockedLogits::logit(std::int64_t row, std::int64_t column) const {
  const std::int64_t i = row * row_stride + column;
  if (bf16) return static_cast<float>(decode_bf16(static_cast<const std::uint16_t*>(logits)[i]));
  return static_cast<const float*>(logits)[i];
}

BlockedWindow BlockedLogits::window(std::int64_t row) const {
  const std::int64_t start = row_starts[row / row_repeat], end = row_ends[row / row_repeat];
  if (start < 0) throw std::invalid_argument("candidate blocks: a window starts before column 0");
  BlockedWindow window{.start = start, .stop = std::min(end, columns), .size = block_size};
  window.grid = (columns + block_size - 1) / block_size;
  if (window.stop > start) window.blocks = (window.stop - start + block_size - 1) / block_size;
  if (end > start) window.newest = (end - start - 1) / block_size;
  return window;
}

}  // namespace plumb::reference
