// SPDX-License-Identifier: Apache-2.0
//
// swa_decode_metadata (operations' specification, 2.7): the sliding-window slots of decode tokens,
// and the request of each token.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/metadata/block_table.h"

namespace plumb::reference {

struct SwaBatch {
  QueryLayout queries;
  const std::int64_t* slot_mapping = nullptr;  // [tokens]; < 0: no token of the batch
  std::int64_t tokens = 0;                     // including padding
  std::int64_t window = 0;
  BlockTable block_table;
};

struct SwaMetadata {
  std::vector<std::int64_t> swa_indices;  // [tokens, window]; -1 after a token's last slot
  std::vector<std::int64_t> swa_lens, token_to_req, is_valid_token;  // [tokens]
  std::vector<std::int64_t> gather_lens;                             // [requests]
};

// Throws std::out_of_range if the block table does not cover a window.
SwaMetadata swa_decode_metadata(const SwaBatch& input);

}  // namespace plumb::reference
