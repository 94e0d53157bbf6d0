// SPDX-License-Identifier: Apache-2.0
//
// The indexer's paged cache of keys, as an op reads it. Parameters of the row: requests, length,
// page, block_gap, blocks, far.
#pragma once

#include <plumb/ops/cache.h>

#include <vector>

#include "cases/ops/cache/block_numbering.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"

namespace plumb::cases {

// As many blocks as the row says, or else block 0, which is nobody's, and those of all requests.
BlockNumbering key_cache_blocks(const Row& row, std::int64_t block_bytes);
// The members of the cache beside its page. Its tensor is named `cache`.
void add_key_cache(TablePart<plumb_paged_cache> cache, const Formula& block_bytes);
// The device's block numbers as rows of the host's cache, -1 for those that it does not have.
std::vector<std::int32_t> host_block_table(const BlockNumbering& blocks,
                                           const HostTensor& block_table);

}  // namespace plumb::cases
