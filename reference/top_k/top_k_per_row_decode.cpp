// SPDX-License-Identifier: Apache-2.0
#include "reference/top_k/top_k_per_row_decode.h"

#include <algorithm>
#include <stdexcept>

namespace plumb::reference {

std::int64_t row_end(const TopKPerRowDecode& input, std::int64_t row) {
  const std::int64_t query = row % input.next_n;
  const std::int32_t* lengths = input.seq_lens + row / input.next_n * input.seq_lens_row_stride;
  const std::int64_t end = input.seq_lens_dims == 2
                               ? lengths[query]
                               : std::int64_t{lengths[0]} - input.next_n + query + 1;
  return std::max<std::int64_t>(0, end);
}

std::vector<LogitWindow> windows_of(const TopKPerRowDecode& input) {
  std::vector<LogitWindow> windows;
  windows.reserve(static_cast<std::size_t>(input.num_rows));
  for (std::int64_t row = 0; row < input.num_rows; ++row) {
    const std::int64_t end = row_end(input, row);
    if (end > input.columns) {
      throw std::invalid_argument("top_k_per_row_decode: a row ends behind the columns");
    }
    const void* first = logit_address(input.logits, input.bf16, row * input.logits_row_stride);
    windows.push_back({first, input.logits_column_stride, end, input.nan_order,
                       input.zeros_are_equal, input.bf16});
  }
  return windows;
}

std::vector<std::int32_t> top_k_per_row_decode(const TopKPerRowDecode& input) {
  return select_top_k(windows_of(input), input.k);
}

}  // namespace plumb::reference
