// SPDX-License-Identifier: Apache-2.0
#include "reference/index_maps/transform_index_page_table.h"

namespace plumb::reference {

std::int64_t SelectedIndices::table_row(std::int64_t token) const {
  if (cu_seqlens_q == nullptr) return token;
  for (std::int64_t request = 0; request < requests; ++request) {
    if (token < std::int64_t{cu_seqlens_q[request + 1]} - cu_seqlens_q[0]) return request;
  }
  return -1;
}

std::int64_t SelectedIndices::index_of(std::int64_t token, std::int64_t column) const {
  if (seq_lens != nullptr && seq_lens[token] <= topk) {
    return column < seq_lens[token] ? column : -1;
  }
  return topk_indices[token * row_stride + column];
}

PageIndices transform_index_page_table(const SelectedIndices& input) {
  PageIndices out;
  out.slots.assign(static_cast<std::size_t>(input.tokens * input.topk), -1);
  out.raw.assign(out.slots.size(), -1);
  for (std::int64_t token = 0; token < input.tokens; ++token) {
    const std::int64_t row = input.table_row(token);
    if (row < 0) continue;
    for (std::int64_t j = 0; j < input.topk; ++j) {
      const std::int64_t index = input.index_of(token, j);
      out.raw[token * input.topk + j] = index;
      if (index < 0) continue;
      const std::int64_t slot = input.page_table.slot(row, index);
      out.slots[token * input.topk + j] = slot < 0 ? kAnyNegative : slot;
    }
  }
  return out;
}

}  // namespace plumb::reference
