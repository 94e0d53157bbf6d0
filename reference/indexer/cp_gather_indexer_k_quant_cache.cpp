// SPDX-License-Identifier: Apache-2.0
#include "reference/indexer/cp_gather_indexer_k_quant_cache.h"

namespace plumb::reference {

std::int64_t IndexerKeyGather::request_of(std::int64_t key) const {
  for (std::int64_t request = 0; request < requests; ++request) {
    if (key < cu_seq_lens[request] || key >= cu_seq_lens[request + 1]) continue;
    return token_to_seq == nullptr || token_to_seq[key] == request ? request : -1;
  }
  return -1;
}

GatheredIndexerKeys cp_gather_indexer_k_quant_cache(const IndexerKeyGather& inputs) {
  const IndexerCacheLayout& layout = inputs.layout;
  GatheredIndexerKeys gathered;
  for (std::int64_t key = 0; key < inputs.keys; ++key) {
    const std::int64_t request = inputs.request_of(key);
    gathered.written.push_back(request >= 0);
    if (request < 0) {
      gathered.codes.resize(gathered.codes.size() + layout.head_dim);
      gathered.scales.resize(gathered.scales.size() + 4 * layout.groups());
      continue;
    }
    const std::int64_t position = key - inputs.cu_seq_lens[request];
    const std::int64_t row = request * inputs.block_table_row_stride;
    const std::int64_t block = inputs.block_table[row + position / layout.page];
    const std::uint8_t* from = inputs.cache + block * inputs.block_stride_bytes;
    const CacheEntry entry = indexer_k_entry(layout, position % layout.page);
    for (const std::int64_t byte : entry.codes) gathered.codes.push_back(from[byte]);
    for (const std::int64_t byte : entry.scales) gathered.scales.push_back(from[byte]);
  }
  return gathered;
}

}  // namespace plumb::reference
