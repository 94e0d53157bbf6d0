// SPDX-License-Identifier: Apache-2.0
//
// top_k_per_row_decode (operations' specification, 4.1 and 4.3): each request has next_n
// consecutive rows. Each row selects from columns [0, end), where the end follows from the sequence
// lengths.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/top_k/top_k_per_row.h"

namespace plumb::reference {

struct TopKPerRowDecode {
  const void* logits = nullptr;            // [num_rows, columns], fp32 or bf16
  const std::int32_t* seq_lens = nullptr;  // [requests], or [requests, next_n] with 2 dimensions
  std::int64_t num_rows = 0, columns = 0;  // num_rows = requests * next_n
  std::int64_t logits_row_stride = 0, logits_column_stride = 1;  // in elements
  std::int64_t seq_lens_row_stride = 1;                          // elements between requests
  std::int32_t seq_lens_dims = 1;
  std::int32_t next_n = 1;
  std::int32_t k = 0;
  NanOrder nan_order = NanOrder::sign_ordered;
  bool zeros_are_equal = false;
  bool bf16 = false;  // the logits
};

// End of one row. With one length per request: max(0, seq_len - next_n + row % next_n + 1), so that
// the last of the next_n rows covers the whole sequence. With one length per row: max(0, length).
std::int64_t row_end(const TopKPerRowDecode& input, std::int64_t row);
// Returns one window per row. Throws std::invalid_argument if an end is past the columns of logits.
std::vector<LogitWindow> windows_of(const TopKPerRowDecode& input);
// Returns the canonical selection, [num_rows, k].
std::vector<std::int32_t> top_k_per_row_decode(const TopKPerRowDecode& input);

}  // namespace plumb::reference
