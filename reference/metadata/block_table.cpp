// SPDX-License-Identifier: Apache-2.0
#include "reference/metadata/block_table.h"

#include <stdexcept>

namespace plumb::reference {

bool BlockTable::holds(std::int64_t request, std::int64_t position) const {
  return request >= 0 && request < requests && position >= 0 && position / block_size < columns;
}

std::int64_t BlockTable::slot(std::int64_t request, std::int64_t position) const {
  if (!holds(request, position)) {
    throw std::out_of_range("a position that the block table does not cover");
  }
  const std::int64_t block = blocks[request * row_stride + position / block_size];
  return block * block_size + position % block_size;
}

std::int64_t QueryLayout::query_len(std::int64_t request) const {
  return std::int64_t{query_start_loc[request + 1]} - query_start_loc[request];
}

std::int64_t QueryLayout::tokens() const {
  return std::int64_t{query_start_loc[requests]} - query_start_loc[0];
}

std::vector<QueryToken> query_tokens(const QueryLayout& layout, std::int64_t most) {
  std::vector<QueryToken> tokens;
  for (std::int64_t request = 0; request < layout.requests; ++request) {
    const std::int64_t count = layout.query_len(request);
    for (std::int64_t i = 0; i < count && std::ssize(tokens) < most; ++i) {
      tokens.push_back({request, layout.seq_lens[request] - count + i});
    }
  }
  return tokens;
}

std::vector<std::int64_t> prefix_sums(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> sums(1, 0);
  for (const std::int64_t length : lengths) sums.push_back(sums.back() + length);
  return sums;
}

}  // namespace plumb::reference
