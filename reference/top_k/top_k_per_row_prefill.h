// SPDX-License-Identifier: Apache-2.0
//
// top_k_per_row_prefill (operations' specification, 4.1 and 4.2): each row selects from its own
// columns [row_starts, row_ends) and returns indices relative to row_starts.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/top_k/top_k_per_row.h"

namespace plumb::reference {

struct TopKPerRowPrefill {
  const void* logits = nullptr;              // [num_rows, columns], fp32 or bf16
  const std::int32_t* row_starts = nullptr;  // [num_rows], in columns of logits
  const std::int32_t* row_ends = nullptr;    // [num_rows]
  std::int64_t num_rows = 0, columns = 0;
  std::int64_t logits_row_stride = 0, logits_column_stride = 1;  // in elements
  std::int32_t k = 0;
  NanOrder nan_order = NanOrder::sign_ordered;
  bool zeros_are_equal = false;
  bool bf16 = false;  // the logits
};

// Returns one window per row, an empty one if the end is not after the start. Throws
// std::invalid_argument if a non-empty window exceeds the columns of logits.
std::vector<LogitWindow> windows_of(const TopKPerRowPrefill& input);
// Returns the canonical selection, [num_rows, k].
std::vector<std::int32_t> top_k_per_row_prefill(const TopKPerRowPrefill& input);

}  // namespace plumb::reference
