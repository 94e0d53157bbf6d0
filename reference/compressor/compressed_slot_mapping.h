// SPDX-License-Identifier: Apache-2.0
//
// compressed_slot_mapping (docs/operations/compressor.md, 10.2): a token that ends a group of
// `ratio` positions closes the group's state and gets the slot of this state.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/metadata/block_table.h"

namespace plumb::reference {

struct CompressedSlotBatch {
  QueryLayout queries;
  const std::int64_t* slot_mapping = nullptr;  // [tokens]; null: tokens need no slot of their own
  std::int64_t tokens = 0, buffer_tokens = 0;
  std::int64_t ratio = 1;
  BlockTable block_table;  // of compressed states
};

// Returns [buffer_tokens] slots; -1: the token closes no state. Throws std::out_of_range if the
// block table does not cover a state.
inline std::vector<std::int64_t> compressed_slot_mapping(const CompressedSlotBatch& input) {
  std::vector<std::int64_t> slots;
  for (const QueryToken& query : query_tokens(input.queries, input.tokens)) {
    const auto token = std::ssize(slots);
    const bool named = input.slot_mapping == nullptr || input.slot_mapping[token] >= 0;
    const std::int64_t states = query.position < 0 ? 0 : (query.position + 1) / input.ratio;
    const bool closes = states * input.ratio == query.position + 1 && states > 0;
    slots.push_back(named && closes ? input.block_table.slot(query.request, states - 1) : -1);
  }
  slots.resize(static_cast<std::size_t>(input.buffer_tokens), -1);
  return slots;
}

}  // namespace plumb::reference
