// SPDX-License-Identifier: Apache-2.0
//
// fp8_paged_mqa_logits (operations' specification, 5.1 and 5.3): next_n query rows of each request
// score the tokens of its context, which lie in a paged cache.
#pragma once

#include "reference/cache/indexer_k_quant_and_cache.h"
#include "reference/indexer/mqa_logits.h"

namespace plumb::reference {

struct Fp8PagedMqaLogits {
  const std::uint8_t* q = nullptr;  // fp8 [requests, next_n, heads, dim]
  const float* weights = nullptr;   // [requests * next_n, heads]
  const std::int32_t* context_lens = nullptr;
  std::int64_t context_lens_row_stride = 1;  // elements between requests
  std::int32_t context_lens_dims = 2;
  const std::uint8_t* cache = nullptr;
  std::int64_t block_stride_bytes = 0;
  IndexerCacheLayout layout;                  // one scale per token
  const std::int32_t* block_table = nullptr;  // [requests, block_table_row_stride]
  std::int64_t block_table_row_stride = 0;
  std::int64_t requests = 0, next_n = 1, heads = 0, dim = 0;
  std::int64_t max_context_len = 0;
  std::int64_t columns = 0;  // of the stored rows, including padding
  bool clean = false;        // columns from the context length to max_context_len are -inf
  bool scaled_keys = false;  // a key is multiplied by its scale before the dot product
  Dialect q_dialect = Dialect::e4m3fn, cache_dialect = Dialect::e4m3fn;
};

// Number of tokens that a row scores, at least 0: the row's own length if lengths are 2-D, else the
// request's length minus (next_n - 1 - query).
std::int64_t context_length(const Fp8PagedMqaLogits& inputs, std::int64_t row);
// Returns fp32 [requests * next_n, columns]; elements that the op does not specify are 0.
Estimate fp8_paged_mqa_logits(const Fp8PagedMqaLogits& inputs, const Numerics& numerics);

}  // namespace plumb::reference
