// SPDX-License-Identifier: Apache-2.0
//
// c128a_decode_metadata (operations' specification, 2.6): all compressed states that a token
// attends to (one for every 128 positions), as slots for decode tokens and as positions for prefill
// tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/metadata/block_table.h"

namespace plumb::reference {

struct C128aBatch {
  const std::int64_t* positions = nullptr;     // [decode_tokens + prefill_tokens]
  const std::int64_t* slot_mapping = nullptr;  // same shape; < 0: no token of the batch
  const std::int32_t* token_to_req = nullptr;  // likewise
  std::int64_t decode_tokens = 0, prefill_tokens = 0;
  std::int64_t max_compressed = 0;
  BlockTable block_table;
};

struct C128aMetadata {
  std::vector<std::int64_t> decode_slots;     // [decode_tokens, max_compressed]
  std::vector<std::int64_t> decode_lens;      // [decode_tokens]
  std::vector<std::int64_t> prefill_indices;  // [prefill_tokens, max_compressed]
};

// Slots of an invalid decode token are -1 here. The op does not specify them.
C128aMetadata c128a_decode_metadata(const C128aBatch& input);

}  // namespace plumb::reference
