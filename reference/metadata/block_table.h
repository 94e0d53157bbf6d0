// SPDX-License-Identifier: Apache-2.0
//
// Where data is stored: slots of a paged cache, and tokens of a batch of requests.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace plumb::reference {

// A slot of which readers only see that it is below 0, as of a position whose block is negative.
constexpr std::int64_t kAnyNegative = std::numeric_limits<std::int64_t>::min();

// Row r holds the physical blocks of request r; each block has `block_size` positions.
struct BlockTable {
  const std::int32_t* blocks = nullptr;  // [requests, columns], rows row_stride apart
  std::int64_t requests = 0, columns = 0, row_stride = 0;
  std::int64_t block_size = 1;

  bool holds(std::int64_t request, std::int64_t position) const;  // whether the table covers it
  // Throws std::out_of_range if holds() is false.
  std::int64_t slot(std::int64_t request, std::int64_t position) const;
};

// Query tokens of requests, one request after the other. The last query token of a request is the
// last token of its sequence. query_start_loc may start above 0; tokens are counted from its first
// element.
struct QueryLayout {
  const std::int32_t* query_start_loc = nullptr;  // [requests + 1]
  const std::int32_t* seq_lens = nullptr;         // [requests]
  std::int64_t requests = 0;

  std::int64_t query_len(std::int64_t request) const;
  std::int64_t tokens() const;
};

// One query token: its request and its position in the sequence.
struct QueryToken {
  std::int64_t request = 0, position = 0;
};
// Returns at most `most` tokens, because query_start_loc of a broken call may hold any number.
std::vector<QueryToken> query_tokens(const QueryLayout& layout, std::int64_t most);

// An indptr: 0, then the sums of the first 1, 2, ... lengths.
std::vector<std::int64_t> prefix_sums(const std::vector<std::int64_t>& lengths);

}  // namespace plumb::reference
