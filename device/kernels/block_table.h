// SPDX-License-Identifier: Apache-2.0
//
// Maps tokens to requests, and positions to slots of a paged cache.
#pragma once

#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

// Slot of a position. `blocks`: the request's row of block_table; `block_size`: positions per
// block. Slots are int32. The product has 64 bits, so that an invalid block id does not overflow
// it.
PLUMB_DEVICE inline std::int64_t wide_slot_of(const std::int32_t* blocks, std::int64_t block_size,
                                              std::int64_t position) {
  const std::int64_t block = blocks[position / block_size];
  return block * block_size + position % block_size;
}
// For ops whose slots fit into 32 bits.
PLUMB_DEVICE inline std::int32_t slot_of(const std::int32_t* blocks, std::int64_t block_size,
                                         std::int64_t position) {
  return static_cast<std::int32_t>(wide_slot_of(blocks, block_size, position));
}

// Number of tokens of all requests.
PLUMB_DEVICE inline std::int64_t token_count(const std::int32_t* query_start_loc,
                                             std::int64_t requests) {
  return query_start_loc[requests] - query_start_loc[0];
}

// The request of a token, -1 behind the last token. Tokens count from query_start_loc[0]. If
// requests start at the same token, all but the last are empty.
PLUMB_DEVICE inline std::int64_t request_of(const std::int32_t* query_start_loc,
                                            std::int64_t requests, std::int64_t token) {
  if (token >= token_count(query_start_loc, requests)) return -1;
  std::int64_t low = 0, high = requests;
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    const bool started = query_start_loc[middle] - query_start_loc[0] <= token;
    (started ? low : high) = middle;
  }
  return low;
}

// Position of a token in the sequence of `request`. The last token of the query is the sequence's
// last.
PLUMB_DEVICE inline std::int64_t position_of(const std::int32_t* query_start_loc,
                                             const std::int32_t* seq_lens, std::int64_t request,
                                             std::int64_t token) {
  const std::int64_t from_end =
      query_start_loc[request + 1] - query_start_loc[0] - token;  // 1 for the last token
  return seq_lens[request] - from_end;
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
