// SPDX-License-Identifier: Apache-2.0
//
// v32_paged_kv_indices (operations' specification, 3.2, step 5): slots of the tokens that the
// indexer chose, into the ranges of a step.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/metadata/block_table.h"

namespace plumb::reference {

struct PagedTopK {
  const std::int32_t* topk_indices = nullptr;      // [tokens, topk]
  const std::int32_t* req_id_per_token = nullptr;  // [tokens]
  const std::int32_t* paged_kv_indptr = nullptr;   // [tokens + 1]
  std::int64_t tokens = 0, row_stride = 0;
  BlockTable block_table;
  std::int64_t missing = 0;  // slot of a token that is missing
};

// Writes the range of each token, entry by entry; a token that is missing (< 0) or that the block
// table does not cover is `missing`. The rest of `paged_kv_indices` stays.
void v32_paged_kv_indices(const PagedTopK& input, std::vector<std::int64_t>& paged_kv_indices);

}  // namespace plumb::reference
