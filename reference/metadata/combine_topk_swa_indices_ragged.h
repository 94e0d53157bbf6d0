// SPDX-License-Identifier: Apache-2.0
//
// combine_topk_swa_indices_ragged (operations' specification, 2.8 and 2.9): the rows of the prefill
// workspace that each token of a chunk of requests attends.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "reference/metadata/block_table.h"
#include "reference/metadata/compute_global_topk_ragged_indices_and_indptr.h"

namespace plumb::reference {

// Request b of the chunk owns workspace rows [M b, M (b + 1)): N for compressed states, then the
// last gather_lens[b] tokens of its sequence.
struct ChunkLists {
  QueryLayout queries;
  const std::int32_t* gather_lens = nullptr;   // [requests]
  const std::int32_t* topk_indices = nullptr;  // [tokens, topk_width]; < 0: none
  std::int64_t tokens = 0;                     // including padded tokens, which have an empty row
  std::int64_t topk_width = 0, topk_indices_row_stride = 0;
  std::int64_t top_k = 0, ratio = 1, window = 0;
  std::int64_t rows_per_request = 0, compressed_rows = 0;  // M, N
  bool shift_minus_one = true;  // -1 of request b becomes M b - 1, else stays -1
};

// Marks an entry that is counted, although the top-k table has no column for it.
inline constexpr std::int64_t kMissingState = std::numeric_limits<std::int64_t>::min();

// Throws std::out_of_range if a row of the window was not gathered.
RaggedSlots combine_topk_swa_indices_ragged(const ChunkLists& input);

// Number of tokens of a request to gather: its query tokens, and the earlier tokens in the window
// of its first query token.
std::int64_t prefill_gather_len(std::int64_t seq_len, std::int64_t query_len, std::int64_t window);

}  // namespace plumb::reference
