// SPDX-License-Identifier: Apache-2.0
#include "reference/top_k/top_k_per_row_prefill.h"

#include <stdexcept>

namespace plumb::reference {

std::vector<LogitWindow> windows_of(const TopKPerRowPrefill& input) {
  std::vector<LogitWindow> windows;
  windows.reserve(static_cast<std::size_t>(input.num_rows));
  for (std::int64_t row = 0; row < input.num_rows; ++row) {
    const std::int64_t start = input.row_starts[row];
    const std::int64_t end = input.row_ends[row];
    if (end <= start) {
      windows.push_back({});
      continue;
    }
    if (start < 0 || end > input.columns) {
      throw std::invalid_argument("top_k_per_row_prefill: a row's window leaves the columns");
    }
    const std::int64_t offset = row * input.logits_row_stride + start * input.logits_column_stride;
    windows.push_back({logit_address(input.logits, input.bf16, offset), input.logits_column_stride,
                       end - start, input.nan_order, input.zeros_are_equal, input.bf16});
  }
  return windows;
}

std::vector<std::int32_t> top_k_per_row_prefill(const TopKPerRowPrefill& input) {
  return select_top_k(windows_of(input), input.k);
}

}  // namespace plumb::reference
