// SPDX-License-Identifier: Apache-2.0
//
// The indexer's paged cache of keys, as an op reads it. It reads the row parameters requests,
// length, page, block_gap, blocks and far.
#pragma once

#include <plumb/ops/cache.h>

#include <vector>

#include "cases/ops/cache/block_numbering.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"

namespace plumb::cases {

// The cache has as many blocks as the row's `blocks`. If that is 0, it has block 0, which no
// request owns, and the blocks of all requests.
BlockNumbering key_cache_blocks(const Row& row, std::int64_t block_bytes);
// Number of blocks of the cache in a call, and as the case holds them.
struct KeyCacheBlocks {
  Formula in_call, of_case;
};
KeyCacheBlocks key_cache_blocks(const Formula& block_bytes);
// Adds the members of the cache, except for `page`. Its tensor is named `cache`.
void add_key_cache(TablePart<plumb_paged_cache> cache, const Formula& block_bytes);
// Converts the device's block numbers to blocks of the host's cache; -1: the cache has no such
// block.
std::vector<std::int32_t> host_block_table(const BlockNumbering& blocks,
                                           const HostTensor& block_table);

}  // namespace plumb::cases
