// SPDX-License-Identifier: Apache-2.0
//
// indexer_k_quant_and_cache: the bytes that the indexer's cache stores for a key (operations spec,
// 5.4).
#pragma once

#include "reference/cache/cache_entry.h"
#include "reference/quantization/group_quant.h"

namespace plumb::reference {

struct IndexerCacheLayout {
  std::int64_t page = 1, head_dim = 128, quant_block = 128;
  // Codes are stored in tiles of 16 tokens x 16 bytes if a page has more than one token.
  bool shuffled = false;

  // False if a tile of the shuffled layout would cross the end of a page or of a row.
  bool has_whole_tiles() const {
    return !shuffled || page == 1 || (page % 16 == 0 && head_dim % 16 == 0);
  }
  std::int64_t groups() const { return head_dim / quant_block; }
  std::int64_t block_bytes() const { return page * (head_dim + 4 * groups()); }
};

GroupQuant indexer_k_quant(Dialect dialect, std::int64_t quant_block, double amax_floor);
// Offsets of head_dim codes and of the 4 bytes of one fp32 scale per quant block.
CacheEntry indexer_k_entry(const IndexerCacheLayout& layout, std::int64_t offset);

}  // namespace plumb::reference
