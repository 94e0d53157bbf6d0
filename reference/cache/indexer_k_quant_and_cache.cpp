// SPDX-License-Identifier: Apache-2.0
#include "reference/cache/indexer_k_quant_and_cache.h"

namespace plumb::reference {

GroupQuant indexer_k_quant(Dialect dialect, std::int64_t quant_block, double amax_floor) {
  GroupQuant how = fp8_quant(dialect, quant_block);
  how.amax_floor = amax_floor;
  return how;
}

CacheEntry indexer_k_entry(const IndexerCacheLayout& layout, std::int64_t offset) {
  CacheEntry entry;
  if (layout.shuffled && layout.page > 1) {
    // [page / 16][head_dim / 16][16 tokens][16 bytes]
    const std::int64_t tiles = layout.head_dim / 16;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      append_range(entry.codes, ((offset / 16 * tiles + tile) * 16 + offset % 16) * 16, 16);
    }
  } else {
    append_range(entry.codes, offset * layout.head_dim, layout.head_dim);
  }
  const std::int64_t scale_bytes = 4 * layout.groups();
  append_range(entry.scales, layout.page * layout.head_dim + offset * scale_bytes, scale_bytes);
  return entry;
}

}  // namespace plumb::reference
