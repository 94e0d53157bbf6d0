// SPDX-License-Identifier: Apache-2.0
//
// cp_gather_indexer_k_quant_cache: copies keys of the indexer's paged cache, request after request.
// Codes and scale bytes are copied unchanged (operations spec, 5.6).
#pragma once

#include <cstdint>
#include <vector>

#include "reference/cache/indexer_k_quant_and_cache.h"

namespace plumb::reference {

struct IndexerKeyGather {
  const std::uint8_t* cache = nullptr;
  std::int64_t block_stride_bytes = 0;
  IndexerCacheLayout layout;
  const std::int32_t* block_table = nullptr;   // [requests, block_table_row_stride]
  const std::int32_t* cu_seq_lens = nullptr;   // [requests + 1]
  const std::int32_t* token_to_seq = nullptr;  // [keys]; null: use cu_seq_lens
  std::int64_t requests = 0, keys = 0, block_table_row_stride = 0;

  // Request of row `key`, or -1 if the row belongs to no request.
  std::int64_t request_of(std::int64_t key) const;
};

struct GatheredIndexerKeys {
  std::vector<bool> written;         // [keys]
  std::vector<std::uint8_t> codes;   // [keys, head_dim], 0 in rows that are not written
  std::vector<std::uint8_t> scales;  // [keys, 4 * groups]
};
GatheredIndexerKeys cp_gather_indexer_k_quant_cache(const IndexerKeyGather& inputs);

}  // namespace plumb::reference
