// SPDX-License-Identifier: Apache-2.0
//
// The rows of logits over a paged cache: which tokens each of them scores, and where they lie.
#pragma once

#include <cstdint>

#include "reference/bound.h"

namespace plumb::reference {

struct PagedLogitsRows {
  const float* weights = nullptr;  // [requests * next_n, heads]
  const std::int32_t* context_lens = nullptr;
  std::int64_t context_lens_row_stride = 1;  // elements between requests
  std::int32_t context_lens_dims = 2;
  const std::uint8_t* cache = nullptr;
  std::int64_t block_stride_bytes = 0;
  const std::int32_t* block_table = nullptr;  // [requests, block_table_row_stride]
  std::int64_t block_table_row_stride = 0;
  std::int64_t requests = 0, next_n = 1, heads = 0, dim = 0;
  std::int64_t max_context_len = 0;
  std::int64_t columns = 0;  // of the stored rows, including padding
  bool clean = false;        // columns from the context length to max_context_len are -inf
};

// Number of tokens that a row scores, at least 0: the row's own length if lengths are 2-D, else the
// request's length minus (next_n - 1 - query).
std::int64_t context_length(const PagedLogitsRows& inputs, std::int64_t row);
// The longest context of a request's rows.
std::int64_t longest_context(const PagedLogitsRows& inputs, std::int64_t request);
// The block that holds a token of a request.
const std::uint8_t* block_of(const PagedLogitsRows& inputs, std::int64_t request,
                             std::int64_t position, std::int64_t page);
// Sets the columns behind a row's context, if they are clean.
void clean_row(const PagedLogitsRows& inputs, std::int64_t row, Estimate& estimate);

}  // namespace plumb::reference
