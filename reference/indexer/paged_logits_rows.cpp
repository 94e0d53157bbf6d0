// SPDX-License-Identifier: Apache-2.0
#include "reference/indexer/paged_logits_rows.h"

#include <algorithm>
#include <limits>

namespace plumb::reference {

std::int64_t context_length(const PagedLogitsRows& inputs, std::int64_t row) {
  const std::int64_t query = row % inputs.next_n;
  const std::int32_t* lengths =
      inputs.context_lens + row / inputs.next_n * inputs.context_lens_row_stride;
  const std::int64_t length =
      inputs.context_lens_dims == 2 ? lengths[query] : lengths[0] - (inputs.next_n - 1 - query);
  return std::max<std::int64_t>(0, length);
}

std::int64_t longest_context(const PagedLogitsRows& inputs, std::int64_t request) {
  std::int64_t longest = 0;
  for (std::int64_t query = 0; query < inputs.next_n; ++query) {
    longest = std::max(longest, context_length(inputs, request * inputs.next_n + query));
  }
  return longest;
}

const std::uint8_t* block_of(const PagedLogitsRows& inputs, std::int64_t request,
                             std::int64_t position, std::int64_t page) {
  const std::int64_t number =
      inputs.block_table[request * inputs.block_table_row_stride + position / page];
  return inputs.cache + number * inputs.block_stride_bytes;
}

void clean_row(const PagedLogitsRows& inputs, std::int64_t row, Estimate& estimate) {
  if (!inputs.clean) return;
  const auto begin = estimate.value.begin() + row * inputs.columns;
  std::fill(begin + context_length(inputs, row), begin + inputs.max_context_len,
            -std::numeric_limits<double>::infinity());
}

}  // namespace plumb::reference
