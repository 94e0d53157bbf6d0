// SPDX-License-Identifier: Apache-2.0
//
// fp8_paged_mqa_logits (operations' specification, 5.1 and 5.3): next_n query rows of each request
// score the tokens of its context, which lie in a paged cache.
#pragma once

#include "reference/cache/indexer_k_quant_and_cache.h"
#include "reference/indexer/mqa_logits.h"
#include "reference/indexer/paged_logits_rows.h"

namespace plumb::reference {

struct Fp8PagedMqaLogits : PagedLogitsRows {
  const std::uint8_t* q = nullptr;  // fp8 [requests, next_n, heads, dim]
  IndexerCacheLayout layout;        // one scale per token
  bool scaled_keys = false;         // a key is multiplied by its scale before the dot product
  Dialect q_dialect = Dialect::e4m3fn, cache_dialect = Dialect::e4m3fn;
};

// Returns fp32 [requests * next_n, columns]; elements that the op does not specify are 0.
Estimate fp8_paged_mqa_logits(const Fp8PagedMqaLogits& inputs, const Numerics& numerics);

}  // namespace plumb::reference
