// SPDX-License-Identifier: Apache-2.0
//
// compute_global_topk_ragged_indices_and_indptr (operations' specification, 2.5): converts the
// top-k positions of each token to slots of the compressed cache, as a ragged list.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/metadata/block_table.h"

namespace plumb::reference {

struct TopKPositions {
  const std::int32_t* topk_indices = nullptr;  // [tokens, topk]; < 0: none
  std::int64_t tokens = 0, topk = 0, row_stride = 0;
  const std::int32_t* token_to_req = nullptr;    // [tokens]
  const std::uint8_t* is_valid_token = nullptr;  // [tokens]
  BlockTable block_table;
};

struct RaggedSlots {
  std::vector<std::int64_t> flat;    // [indptr.back()]
  std::vector<std::int64_t> indptr;  // [tokens + 1]
  std::vector<std::int64_t> lens;    // [tokens]
};

// lens[t] is the number of valid positions of token t in any column. The op then takes lens[t]
// columns from the left, so a hole makes it lose a valid position. Throws std::out_of_range if the
// block table does not cover a position that is taken.
RaggedSlots compute_global_topk_ragged_indices_and_indptr(const TopKPositions& input);

}  // namespace plumb::reference
