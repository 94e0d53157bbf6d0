// SPDX-License-Identifier: Apache-2.0
//
// v32_paged_kv_indices (operations' specification, 3.2, step 5): writes the slots of the tokens
// that the indexer chose into the ranges of a step.
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
  std::int64_t missing = 0;  // slot that stands for a missing token
};

// Writes the slots of each token to its range in `paged_kv_indices`. A position that is negative or
// that the block table does not cover becomes `input.missing`. All other elements stay unchanged.
void v32_paged_kv_indices(const PagedTopK& input, std::vector<std::int64_t>& paged_kv_indices);

}  // namespace plumb::reference
