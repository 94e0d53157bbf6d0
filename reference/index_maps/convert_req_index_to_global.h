// SPDX-License-Identifier: Apache-2.0
//
// convert_req_index_to_global (operations' specification, 3.3): the rows that V3.2's sparse
// attention reads for the positions that the indexer chose. Decode tokens read the cache, prefill
// tokens a workspace. The definition follows vLLM's converter (vllm/v1/attention/backends/mla/
// sparse_utils.py).
#pragma once

#include <cstdint>
#include <vector>

#include "reference/metadata/block_table.h"

namespace plumb::reference {

struct ChosenPositions {
  const std::int32_t* req_id = nullptr;              // [tokens]
  const std::int32_t* token_indices = nullptr;       // [tokens, topk]; < 0: none
  const std::int32_t* prefill_request_id = nullptr;  // [tokens]; < 0: decode. null: all decode
  const std::int32_t* workspace_starts = nullptr;    // [prefills]
  std::int64_t tokens = 0, topk = 0, row_stride = 0, prefills = 0;
  BlockTable block_table;              // of the positions that this rank has
  std::int64_t block_stride_rows = 1;  // rows of the cache from one block to the next
  // Ranks take positions in turn, `dcp_interleave` at a time.
  std::int64_t dcp_size = 1, dcp_rank = 0, dcp_interleave = 1;

  // Row of the j-th position of a token, or -1: a negative position, one of another rank, or one
  // that the block table does not cover. Throws std::out_of_range for a prefill_request_id that
  // has no workspace.
  std::int64_t row_of(std::int64_t token, std::int64_t j) const;
};

struct GlobalIndices {
  std::vector<std::int64_t> indices;  // [tokens, topk]
  std::vector<std::int64_t> counts;   // [tokens]: entries that are not -1
};

// to_left: entries that are not -1 come first, in their order.
GlobalIndices convert_req_index_to_global(const ChosenPositions& input, bool to_left);

}  // namespace plumb::reference
